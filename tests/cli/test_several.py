"""One verb for several batches: which, after asking, and what came of each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.helpers.command import block, patchq, report, work
from tests.helpers.gitrepo import git
from tests.helpers.terminal import WAIT_SECONDS, on_a_terminal, plain


def by(agent: str, text: str) -> str:
    return f"---\nagent: {agent}\n---\n{text}"


def new(name: str) -> str:
    return block(f"{name}.txt", "", f"{name}\n")


@pytest.fixture
def repo(repo: Path) -> Path:
    """Two proposals each of two agents, one of nobody, one that is held, two that are refused."""
    wrong = block("a.txt", "nowhere\n", "x\n")
    ada = {"a1": new("a1"), "a2": new("a2"), "r1": wrong + "1", "r2": wrong + "2"}
    bob = {"b1": new("b1"), "b2": new("b2")}
    given = {id: by("ada", text) for id, text in ada.items()}
    given |= {id: by("bob", text) for id, text in bob.items()}
    work(repo, **given, n=new("n"), h=by("bob\ndepends_on: [n]", new("h")))
    return repo


def states(repo: Path, *ids: str) -> list[str]:
    return [report(repo / ".patchq", id)["state"] for id in ids]


def test_several_are_decided_and_each_is_told(repo: Path) -> None:
    done = patchq("accept", "a1", "b1", "a1", cwd=repo)
    assert re.findall(r"^(\w+ +\w+)", done.out, re.M) == ["accepted   a1", "accepted   b1"]
    done = patchq("discard", "a1", "a2", "b2", cwd=repo, code=2)
    assert re.findall(r"^(\w+ +\w+)", done.out, re.M) == ["discarded  a2", "discarded  b2"]
    assert done.err.startswith("patchq: a1: change a1 does not wait for review: it is accepted; ")


def test_the_worst_exit_code_is_that_of_all(repo: Path) -> None:
    done = patchq("accept", "--fail-fast", "a2", "r1", "b2", cwd=repo, code=2)
    assert done.err.splitlines()[-1] == "patchq: left as they were: b2"
    (repo / "b1.txt").write_text("mine\n")
    told = patchq("--json", "accept", "b1", "a1", "r1", cwd=repo, code=2)
    assert [json.loads(line)["id"] for line in told.out.splitlines()] == ["a1"]
    errors = [json.loads(line)["error"] for line in told.err.splitlines()]
    codes = {error["id"]: error["code"] for error in errors}
    assert codes == {"b1": "worktree.dirty", "r1": "usage"}
    assert patchq("accept", "b1", "b2", cwd=repo, code=1).out.startswith("accepted   b2")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("accept a1 b11", "there is no change b11, so nothing is decided; did you mean `b1`?"),
        ("discard a1 --all-from ada --yes", "--all-from names the changes already"),
        ("discard --all-from ada", "there is no terminal to ask on: discard these 2 changes?"),
        ("accept --all-from adda --yes", "nothing of 'adda' to accept; did you mean `ada`?"),
        ("accept a1 a2 --only 1", "--only names edits of one change"),
        ("retry r1 r2 --without 1", "--without names edits of one change"),
    ],
)
def test_wrong_words_decide_nothing(repo: Path, words: str, says: str) -> None:
    assert says in patchq(*words.split(), cwd=repo, code=2).err
    assert states(repo, "a1", "a2", "b1") == ["proposed"] * 3


def test_all_of_an_agent(repo: Path) -> None:
    accepted = patchq("accept", "--all-from", "ada", "--yes", cwd=repo).out
    assert [line.split()[1] for line in accepted.splitlines()] == ["a1", "a2"]
    again = patchq("accept", "--all-from", "ada", "--yes", cwd=repo)
    assert (again.out, again.err) == ("", "patchq: nothing of ada to accept\n")
    discarded = patchq("discard", "--all-from", "bob", "--yes", cwd=repo).out
    assert [line.split()[1] for line in discarded.splitlines()] == ["b1", "b2", "h"]
    tried = patchq("retry", "--all-from", "ada", "--yes", cwd=repo, code=1).out
    assert len(tried.splitlines()) == 2


@pytest.mark.parametrize(("answer", "state"), [("y", "discarded"), ("n", "proposed")])
def test_a_person_is_asked(repo: Path, answer: str, state: str) -> None:
    with on_a_terminal(repo, "discard", "--all-from", "bob", "-m", "Not now") as terminal:
        terminal.read_until(lambda text: "discard these 3 changes? [y]es, [n]o: " in text)
        terminal.type(f"{answer}\n")
        lines = plain(terminal.read_all())
        assert terminal.process.wait(WAIT_SECONDS) == 0
    (b1,) = (line for line in lines if line.startswith("proposed  b1  "))
    assert "+1 \N{MINUS SIGN}0 b1.txt" in b1
    assert states(repo, "b1", "b2", "a1") == [state, state, "proposed"]


def test_why_is_kept_and_told(repo: Path) -> None:
    why = "Not like this:\nuse the <!-- helper --> of `util`"
    patchq("discard", "b1", "h", "-m", why, cwd=repo)
    for id in ("b1", "h"):
        assert report(repo / ".patchq", id)["reason"] == why
        page = (repo / f".patchq/done/{id}.report.md").read_text()
        assert "Why:\n\n```\nNot like this:\nuse the <!-- helper --> of `util`\n```\n" in page
    commit = git("rev-parse", "refs/patchq/discarded/b1", cwd=repo).strip()
    note = git("notes", "--ref=patchq", "show", commit, cwd=repo)
    assert "Patchq-Reason: Not like this: use the <!-- helper" in note
