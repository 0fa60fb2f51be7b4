"""The hook `patchq:ci`: candidates are pushed, and the checks of the forge's own CI judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.forge import day
from tests.forge.conftest import Scene
from tests.forge.fake import TOKEN
from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import git

Configure = Callable[[str], None]


@pytest.fixture
def configure(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Serves the fake; the function has the hook, with more of its keys, configured."""
    monkeypatch.setenv("PATCHQ_FORGE_TOKEN", TOKEN)
    with day.served(scene.fake) as url:

        def commit(more: str) -> None:
            hook = f"{{id: ci, stage: pre-commit, run: 'patchq:ci', {more}}}"
            scene.commit_config(f"  url: {url}\n  poll_seconds: 0.05\nhooks:\n  - {hook}\n")

        yield commit


JUDGED: dict[str, tuple[str, list[str], dict[str, str | None], str, str]] = {
    "named": ("checks: [build]", [], {"build": "success", "lint": "failure"}, "", ""),
    "required": ("", ["build"], {"build": "neutral", "lint": "failure"}, "", ""),
    "required-fails": ("", ["ci/old"], {"ci/old": "error"}, "hook.refused", "ci/old: failure https://"),
    "skipped": ("checks: [lint]", [], {"lint": "skipped"}, "hook.refused", "lint: skipped"),
    "all": ("", [], {"build": "success", "lint": "skipped"}, "", ""),
    "one-fails": ("", [], {"build": None, "lint": "timed_out"}, "hook.refused", "lint: failure https://"),
    "pending": ("timeout_seconds: 3", [], {"build": None}, "hook.timeout", "waits for build"),
    "none": ("timeout_seconds: 3", [], {}, "hook.timeout", "waits for checks"),
}  # fmt: skip


@pytest.mark.parametrize("case", JUDGED)
def test_checks_of_the_forge_judge_a_change(scene: Scene, configure: Configure, case: str) -> None:
    more, required, checks, code, output = JUDGED[case]
    configure(more)
    scene.fake.required = ["patchq/reviewed", *required]
    pushed = list[str]()

    def ci(commit: str) -> list[tuple[str, str | None]]:
        pushed.append(git("show", f"{commit}:a.py", cwd=scene.fake.bare))
        return list(checks.items())

    scene.fake.ci = ci
    found = scene.propose("one", "a3 = 3", "a3 = 33", code=int(bool(code)))
    assert found["state"] == ("rejected" if code else "proposed")
    assert [one["code"] for one in found["problems"]] == [code] * bool(code)
    assert output in found["hooks"][0]["output"]
    assert all("a3 = 33\n" in text for text in pushed)
    assert TOKEN not in str(found)
    git("fsck", "--strict", cwd=scene.clone)


def test_rulesets_require_checks(scene: Scene) -> None:
    scene.fake.required, scene.fake.rules = ["build"], ["lint"]
    assert scene.forge.rights("main").required == ["build", "lint"]


def test_a_check_that_appears_later_counts(scene: Scene, configure: Configure) -> None:
    configure("")
    build, lint = ("build", "success"), ("lint", "failure")
    # One look asks twice: for runs, and for statuses.
    looks: Iterator[list[tuple[str, str | None]]] = iter([[], [], [build], [build]])
    scene.fake.ci = lambda commit: next(looks, [build, lint])
    found = scene.propose("one", "a3 = 3", "a3 = 33", code=1)
    assert "lint: failure" in found["hooks"][0]["output"]


def test_a_forge_that_is_away_is_waited_for(scene: Scene, configure: Configure) -> None:
    configure("")
    unknown = [LookupError("no commit found")]

    def ci(commit: str) -> list[tuple[str, str | None]]:
        if unknown:
            raise unknown.pop()
        return [("build", "success")]

    scene.fake.ci = ci
    faults = iter(["502"] * 20)
    scene.fake.fault = lambda what: next(faults, None)
    found = scene.propose("one", "a3 = 3", "a3 = 33")
    assert found["state"] == "proposed"
    output = found["hooks"][0]["output"]
    assert "answers 502" in output
    assert "no commit found" in output


def test_without_a_token_nothing_is_refused(
    scene: Scene, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("")
    monkeypatch.delenv("PATCHQ_FORGE_TOKEN")
    drop(scene.clone / ".patchq", {"one.md": block("a.py", "a3 = 3\n", "a3 = 33\n")})
    done = patchq("run", cwd=scene.clone, code=3)
    assert "PATCHQ_FORGE_TOKEN is not set" in done.err
    monkeypatch.setenv("PATCHQ_FORGE_TOKEN", TOKEN)
    scene.fake.ci = lambda commit: [("build", "success")]
    patchq("run", cwd=scene.clone)
    assert scene.report("one")["state"] == "proposed"


def test_a_train_is_checked_once(scene: Scene, configure: Configure) -> None:
    configure("checks: [build]")
    branch, scene.fake.ci = "patchq-train/main", lambda commit: [("build", "success")]
    scene.propose_all({f"p{n}": (f"a{20 * n} = {20 * n}", f"a{20 * n} = 0") for n in (1, 2, 3)})
    scene.fake.look()
    before = scene.fake.moved[branch]
    patchq("accept", "p1", "p2", "p3", cwd=scene.clone)
    scene.fake.look()
    assert (before, scene.fake.moved[branch]) == (3, 4)
    assert scene.there(f"{branch}^{{tree}}") == scene.there("main^{tree}")
    assert len(scene.report("p3")["hooks"][-1]["with"]) == 2
