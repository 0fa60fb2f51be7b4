"""What GitLab alone does: paths of groups, positions of comments, and states of a status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from patchq.forge.connect import findings, project_of
from patchq.forge.wire import CommitCheck
from patchq.gate.config.schema import Config
from patchq.gate.config.schema import Forge as Section
from patchq.gate.errors import UsageError
from patchq.gate.git.repository import Repository
from tests.forge.conftest import Scene
from tests.forge.fake import TOKEN
from tests.forge.fake_gitlab import GitLabFake
from tests.helpers.command import patchq
from tests.helpers.gitrepo import git, make_repo


@pytest.fixture
def kind() -> str:
    return "gitlab"


@pytest.fixture
def fake(scene: Scene) -> GitLabFake:
    """The fake, with a request of one change."""
    assert isinstance(scene.fake, GitLabFake)
    scene.propose("one", "a3 = 3", "a3 = 33")
    scene.round()
    return scene.fake


LAB = {"kind": "gitlab"}
BELOW = {**LAB, "url": "https://acme.org/lab/api/v4/"}
PLACES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "groups": ("git@gitlab.com:acme/tools/demo.git", {},
               "https://gitlab.com/api/v4/projects/acme%2Ftools%2Fdemo/merge_requests"),
    "own-server": ("ssh://git@git.acme.org:2222/demo/it", LAB,
                   "https://git.acme.org/api/v4/projects/demo%2Fit/merge_requests"),
    "below-a-path": ("https://acme.org/lab/a/b/c.git", BELOW,
                     "https://acme.org/lab/api/v4/projects/a%2Fb%2Fc/merge_requests"),
    "github": ("git@github.com:acme/demo", {}, "https://api.github.com/repos/acme/demo/pulls"),
    "enterprise": ("https://me:pw@ghe.acme.org/a/b/acme/demo.git/", {"kind": "github"},
                   "https://ghe.acme.org/api/v3/repos/acme/demo/pulls"),
    "unknown": ("https://git.acme.org/acme/demo", {}, None),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_the_remote_and_the_section_tell_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    remote, section, asked = PLACES[place]
    monkeypatch.setenv("PATCHQ_FORGE_TOKEN", TOKEN)
    repo = Repository.open(make_repo(tmp_path / "clone", {"a": "1\n"}))
    git("remote", "add", "origin", remote, cwd=tmp_path / "clone")
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(str(request.url).partition("?")[0])
        return httpx2.Response(200, json=[])

    config = Config(forge=Section(**section, write_seconds=0))
    transport = httpx2.MockTransport(answer)
    if asked is None:
        with pytest.raises(UsageError, match="it is not known which forge"):
            project_of(repo, config, transport)
    else:
        assert project_of(repo, config, transport).changed(None) == []
        assert seen == [asked]


def test_threads_have_their_lines_and_the_review_of_their_author(
    scene: Scene, fake: GitLabFake
) -> None:
    review = fake.review(1, "ada", "CHANGES_REQUESTED", "Not so.")
    fake.comment(1, "ada", "a.py", 3, "why?", pull_request_review_id=review)
    old = fake.comment(1, "grace", "a.py", 4, "and this?", side="LEFT")
    fake.pulls[1].resolved.add(old)
    talk = scene.forge.conversation(1)
    first, second = talk.threads
    assert (first.path, first.line, first.side, first.resolved) == ("a.py", 3, "new", False)
    assert (second.line, second.side, second.resolved) == (4, "base", True)
    assert {first.commit, second.commit} == {fake.pulls[1].values["head"]["sha"]}
    (decision,) = [one for one in talk.remarks if one.what != "comment"]
    assert (decision.by, decision.what) == ("ada", "changes")
    assert decision.review == first.texts[0].review
    assert second.texts[0].review == ""


def test_a_status_belongs_to_the_pipeline_of_its_branch(scene: Scene, fake: GitLabFake) -> None:
    """GitLab takes any branch that contains the commit, as a stack's upper ones do."""
    scene.propose("also", "a33 = 33", "a33 = 3", head="---\ndepends_on: [one]\n---\n")
    scene.round()
    heads = [fake.pulls[number].values["head"] for number in (1, 2)]
    assert [fake.statuses[head["sha"]]["ref"] for head in heads] == ["patchq/one", "patchq/also"]


def test_check_tells_what_is_missing(scene: Scene, fake: GitLabFake) -> None:
    for level, waits, todo in (
        (30, True, []),
        (20, True, ["missing: it may write to the project"]),
        (30, False, ["missing: main requires the status patchq/reviewed"]),
    ):
        fake.level, fake.waits_for_pipelines = level, waits
        found = findings(scene.forge, "main")
        assert [text for kind, text in found if kind == "todo"] == todo
        assert found[0][1].endswith(", and expires at 2027-01-31")


def test_commands_of_gitlab_are_no_commands_in_an_agents_words(
    scene: Scene, fake: GitLabFake
) -> None:
    """GitLab ends a block of code at any line of three ticks, and obeys the lines behind it."""
    scene.propose("two", "a5 = 5", "a5 = 55", head="---\n---\nTitle\n\n```\n/merge\n/close\n\n")
    scene.round()
    body = fake.pulls[2].values["body"]
    assert "/merge" in body
    assert _commands(body) == []
    # A person's half of a block of code becomes commands once patchq sends it.
    fake.pulls[2].values["body"] = f"```\n/approve\n\r/merge\n{body}"
    fake.review(2, "ada", "COMMENTED")
    scene.propose("three", "a5 = 5", "a5 = 56", head="---\nretries: two\n---\n")
    scene.round()
    body = fake.pulls[2].values["body"]
    assert "`three`" in body
    assert body.startswith("```\n /approve\n /merge\n")
    assert _commands(body) == []
    assert scene.round() == []


def _commands(body: str) -> list[str]:
    return [line for line in body.replace("\r", "").splitlines() if line.startswith("/")]


def test_jobs_are_checks_but_for_the_status(fake: GitLabFake, scene: Scene) -> None:
    head = fake.pulls[1].values["head"]["sha"]
    jobs: list[tuple[str, bool, Any]] = [
        ("manual", False, "pending"),
        ("success", False, "success"),
        ("failed", False, "failure"),
        ("failed", True, "success"),
        ("skipped", False, "skipped"),
    ]
    for status, may_fail, state in jobs:
        told = {"name": "build", "status": status, "allow_failure": may_fail}
        fake.jobs[head] = [{"id": 2, **told}]
        assert scene.forge.checks(head)[-1] == CommitCheck("build", state, ""), told


@pytest.mark.parametrize("scene", ["  land: merge\n"], indirect=True, ids=["merge"])
def test_a_merge_that_gitlab_only_takes_is_none(scene: Scene, fake: GitLabFake) -> None:
    """GitLab answers 200 to a merge that has to wait, or that it fails to make."""
    fake.squash_option, fake.merge_error = "never", "Merge failed: hook declined."
    patchq("accept", "one", cwd=scene.clone)
    assert "cannot merge #1: Merge failed: hook declined." in scene.round()
    assert (fake.state(1), scene.report("one")["state"]) == ("open", "proposed")
    fake.merge_error = None
    scene.begin()
    scene.round()
    assert (fake.state(1), scene.report("one")["state"]) == ("merged", "accepted")
    parents = git("show", "-s", "--format=%P", "main", cwd=fake.bare).split()
    assert len(parents) == 2
