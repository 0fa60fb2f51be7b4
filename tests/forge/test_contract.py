"""The contract of an adapter, beside each fake, and beside a real server where one is named.

PATCHQ_TEST_FORGE is the URL of a project for tests, with what git needs to push; its main branch
gets a commit.  PATCHQ_FORGE_TOKEN is a token for it.  PATCHQ_TEST_FORGE_KIND and
PATCHQ_TEST_FORGE_API are the keys `kind` and `url` of the section, where the URL says too little.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from patchq.forge.connect import Project, project_of
from patchq.forge.wire import CONTEXT, StatusState
from patchq.gate.config.schema import Config
from patchq.gate.config.schema import Forge as Section
from patchq.gate.git.repository import Repository
from tests.forge.conftest import Scene
from tests.helpers.gitrepo import commit_files, git


@pytest.fixture(params=["github", "gitlab", pytest.param("server", marks=pytest.mark.forge)])
def there(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    named_forge: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Project, Path]]:
    """A project, and a clone of it."""
    if request.param != "server":
        scene = Scene(tmp_path, kind=request.param)
        yield scene.forge, scene.clone
        return
    if "PATCHQ_TEST_FORGE" not in named_forge:
        pytest.skip("PATCHQ_TEST_FORGE names no project")
    clone = tmp_path / "clone"
    git("clone", "-q", named_forge["PATCHQ_TEST_FORGE"], str(clone), cwd=tmp_path)
    monkeypatch.setenv("PATCHQ_FORGE_TOKEN", named_forge["PATCHQ_FORGE_TOKEN"])
    keys = {"kind": "PATCHQ_TEST_FORGE_KIND", "url": "PATCHQ_TEST_FORGE_API"}
    given: dict[str, Any] = {
        key: named_forge[name] for key, name in keys.items() if name in named_forge
    }
    forge = project_of(Repository.open(clone), Config(forge=Section(**given)))
    yield forge, clone


def test_a_request_from_its_opening_to_its_merge(there: tuple[Project, Path]) -> None:
    forge, clone = there
    base, branch = git("branch", "--show-current", cwd=clone), f"patchq/contract-{uuid4().hex[:8]}"
    me, rights = forge.me(), forge.rights(base)
    assert (rights.login, rights.can_write, forge.may(me)) == (me, True, True)
    head = commit_files(clone, {f"{branch}.txt": "1\n"}, "Contract")
    git("push", "-q", "--no-verify", "origin", f"{head}:refs/heads/{branch}", cwd=clone)

    made = forge.open(branch, base, "Title", "Body")
    assert made
    assert (made.branch, made.base, made.head, made.is_open) == (branch, base, head, True)
    assert (made.author, forge.open(branch, base, "Again", "")) == (me, None)
    forge.edit(made.number, title="Other title", body="Other body\n\n<!-- patchq: x -->")
    (found,) = forge.of_branch(branch)
    assert (found.title, found.body) == ("Other title", "Other body\n\n<!-- patchq: x -->")
    for since in (None, made.updated):
        assert made.number in [one.number for one in forge.changed(since)]

    assert forge.statuses(head) == []
    states: tuple[StatusState, ...] = ("pending", "failure", "success")
    for state in states:
        forge.set_status(head, state, "A text")
        assert [(one.name, one.state) for one in forge.statuses(head)] == [(CONTEXT, state)]

    forge.note(made.number, "Well.\n\n<!-- patchq: key -->")
    forge.note(made.number, "/patchq send-back\nNot so.")
    talk = forge.conversation(made.number)
    assert [(one.by, one.what, one.text) for one in talk.remarks] == [
        (me, "comment", "Well.\n\n<!-- patchq: key -->"),
        (me, "changes", "Not so."),
    ]
    assert (talk.threads, talk.conflicts) == ((), False)

    forge.edit(made.number, state="closed")
    assert [one.is_open for one in forge.of_branch(branch)] == [False]
    assert forge.closed_by(made.number) == me
    forge.edit(made.number, state="open")
    commit = forge.merge(made.number, head, "Merged\n\nBy the contract.")
    git("fetch", "-q", "origin", cwd=clone)
    git("merge-base", "--is-ancestor", commit, f"origin/{base}", cwd=clone)
    assert git("show", f"{commit}:{branch}.txt", cwd=clone) == "1"
    assert [one.merged for one in forge.of_branch(branch)] == [True]
    git("push", "-q", "--no-verify", "origin", f":refs/heads/{branch}", cwd=clone)
