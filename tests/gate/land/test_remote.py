"""One machine is the gate of a shared repository: verdicts come true by a push, end to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import processes
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.ending import until
from tests.helpers.gitrepo import commit_files, git, make_repo, tip, write_config

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A clone whose batches land on its remote `origin`, beside it."""
    make_repo(tmp_path / "seed", FILES)
    git("clone", "-q", "--bare", "seed", "hub.git", cwd=tmp_path)
    git("clone", "-q", "hub.git", "gate", cwd=tmp_path)
    configure(tmp_path / "gate", "auto")
    return tmp_path / "gate"


def configure(gate: Path, mode: str, more: str = "") -> None:
    text = f"version: 1\nmode: {mode}\nlanding:\n  remote: origin\n{more}"
    write_config(gate, text)
    patchq("init", cwd=gate)


def hub(gate: Path) -> Path:
    return gate.parent / "hub.git"


def person(gate: Path) -> Path:
    """Somebody's clone of the same remote, as it is now."""
    git("clone", "-q", "hub.git", "person", cwd=gate.parent)
    return gate.parent / "person"


def refs(place: Path) -> set[str]:
    return set(git("for-each-ref", "--format=%(refname)", cwd=place).split())


def there(gate: Path, path: str = "a.txt") -> str:
    return git("show", f"main:{path}", cwd=hub(gate)) + "\n"


def told(gate: Path, id: str) -> dict[str, Any]:
    return report(gate / ".patchq", id)


def states(gate: Path, *ids: str) -> list[str]:
    return [told(gate, id)["state"] for id in ids]


def test_auto_mode_lands_by_a_push_and_leaves_the_clone_alone(gate: Path) -> None:
    before = tip(gate)
    responses = {"x.md": block("a.txt", "two\n", "2\n"), "y.md": block("b.txt", "b\n", "B\n")}
    drop(gate / ".patchq", responses)
    patchq("run", cwd=gate)
    assert states(gate, "x", "y") == ["applied", "applied"]
    assert told(gate, "y")["commit"] == tip(hub(gate))
    assert there(gate) == "one\n2\nthree\n"
    assert refs(hub(gate)) == {"refs/heads/main"}
    assert tip(gate) == before
    assert (gate / "a.txt").read_text() == FILES["a.txt"]
    assert tip(gate, "origin/main") == tip(hub(gate))


def test_review_accept_discard_and_revert(gate: Path) -> None:
    configure(gate, "review")
    responses = {
        "x.md": block("a.txt", "one\n", "1\n"),
        "y.md": block("a.txt", "three\n", "3\n"),
        "z.md": block("b.txt", "b\n", "B\n"),
    }
    drop(gate / ".patchq", responses)
    patchq("run", cwd=gate)
    branches = {f"refs/heads/patchq/{id}" for id in "xyz"}
    assert refs(hub(gate)) == {"refs/heads/main", *branches}
    assert not any(ref.startswith("refs/heads/patchq") for ref in refs(gate))
    patchq("accept", "x", cwd=gate)
    # What waits follows its target there.
    assert git("rev-parse", "patchq/y~1", cwd=hub(gate)) == tip(hub(gate))
    patchq("discard", "z", cwd=gate)
    assert refs(hub(gate)) == {"refs/heads/main", "refs/heads/patchq/y"}
    patchq("accept", "y", cwd=gate)
    assert there(gate) == "1\ntwo\n3\n"
    patchq("revert", "x", cwd=gate)
    assert there(gate) == "one\ntwo\n3\n"
    assert refs(hub(gate)) == {"refs/heads/main"}
    assert states(gate, *"xyz") == ["reverted", "accepted", "discarded"]


def merge(gate: Path) -> None:
    place = person(gate)
    git("merge", "-q", "--no-ff", "-m", "Merge", "origin/patchq/x", cwd=place)
    git("push", "-q", "origin", "HEAD:main", cwd=place)


def delete(gate: Path) -> None:
    git("push", "-q", "origin", ":patchq/x", cwd=person(gate))


def amend(gate: Path) -> None:
    place = person(gate)
    git("checkout", "-q", "-B", "own", "origin/patchq/x", cwd=place)
    commit_files(place, {"b.txt": "more\n"})
    git("push", "-q", "origin", "HEAD:patchq/x", cwd=place)


@pytest.mark.parametrize(
    ("deed", "state"), [(merge, "accepted"), (delete, "discarded"), (amend, "proposed")]
)
def test_what_people_do_on_the_remote_is_noticed(
    gate: Path, deed: Callable[[Path], None], state: str
) -> None:
    configure(gate, "review")
    drop(gate / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
    patchq("run", cwd=gate)
    deed(gate)
    patchq("run", cwd=gate)
    assert (told(gate, "x")["state"], told(gate, "x")["problems"]) == (state, [])
    assert ("refs/heads/patchq/x" in refs(hub(gate))) == (state == "proposed")
    if state == "proposed":
        patchq("accept", "x", cwd=gate)
        assert there(gate, "b.txt") == "more\n"


def test_a_remote_that_is_away_holds_batches_and_is_named(gate: Path) -> None:
    hub(gate).rename(gate.parent / "elsewhere")
    drop(gate / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
    patchq("run", cwd=gate)
    held = told(gate, "x")
    assert held["state"] == "held"
    assert "origin cannot be fetched" in held["problems"][0]["message"]
    assert "origin cannot be fetched" in patchq("status", cwd=gate).out
    (gate.parent / "elsewhere").rename(hub(gate))
    patchq("run", cwd=gate)
    assert states(gate, "x") == ["applied"]
    assert "cannot be fetched" not in patchq("status", cwd=gate).out


@pytest.mark.parametrize(
    ("words", "state", "code"),
    [
        ("lines are too long", "rejected", "hook.refused"),
        ("You are not allowed to push to protected branches", "held", "target.busy"),
    ],
)
def test_what_the_remote_refuses_is_told_in_its_words(
    gate: Path, words: str, state: str, code: str
) -> None:
    hook = hub(gate) / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')
    hook.chmod(0o755)
    drop(gate / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
    patchq("run", cwd=gate, code=1 if state == "rejected" else 0)
    found = told(gate, "x")
    assert found["state"] == state
    assert [p["code"] for p in found["problems"]] == [code]
    assert words in found["problems"][0]["message"]
    hook.unlink()
    if state == "held":
        patchq("run", cwd=gate)
        assert states(gate, "x") == ["applied"]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("landing: {remote: upstream}", "landing.remote: expected a remote that `git remote` has"),
        ("target: nope", "target: expected a branch with a commit, got `nope`"),
    ],
)
def test_config_check_names_what_cannot_be(gate: Path, line: str, wrong: str) -> None:
    write_config(gate, f"version: 1\n{line}\n")
    assert wrong in patchq("config", "check", cwd=gate, code=2).err


def test_a_daemon_goes_on_by_itself_after_a_push_in_doubt(gate: Path) -> None:
    gone, log = hub(gate).with_name("gone.git"), gate.with_name("log")
    hook = hub(gate) / "hooks/pre-receive"
    hook.write_text(f"#!/bin/sh\nmv {hub(gate)} {gone}\nkill -9 $PPID\n")
    hook.chmod(0o755)
    daemon = processes.start("watch", cwd=gate, log=log)
    try:
        drop(gate / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
        until(lambda: "it is unknown if" in log.read_text())
        (gone / "hooks/pre-receive").unlink()
        gone.rename(hub(gate))
        until(lambda: (gate / ".patchq/done/x.report.json").exists())
        assert daemon.poll() is None
        daemon.terminate()
        assert daemon.wait() == 0
    finally:
        processes.end([daemon])
    assert states(gate, "x") == ["applied"]
    assert there(gate) == "one\n2\nthree\n"
