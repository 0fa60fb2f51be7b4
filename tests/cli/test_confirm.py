"""`confirm: true`: a person at a terminal decides; where nobody is, a response is proposed.  And
`worktree.backup: true`: copies of what a landing updates."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.command import block, drop, fresh, patchq, report
from tests.helpers.gitrepo import git, make_repo
from tests.helpers.terminal import WAIT_SECONDS, Terminal, on_a_terminal

TWO = block("a.txt", "one\n", "1\n") + block("b.txt", "b\n", "B\n")
OTHER = block("c.txt", "", "c\x1b[2J\n")
QUESTION = "[q]uit: "


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    text = "version: 1\nmode: auto\nconfirm: true\n"
    files = {"a.txt": "one\ntwo\n", "b.txt": "b\n", ".patchq.yaml": text}
    repo = make_repo(tmp_path / "repo", files)
    patchq("init", cwd=repo)
    return repo


def state(repo: Path, id: str) -> str:
    return str(report(repo / ".patchq", id)["state"])


def answer(terminal: Terminal, *answers: str) -> None:
    """Type each answer once its question has come."""
    for text in answers:
        asked = partial(_is_asked, len(terminal.text))
        terminal.read_until(asked)
        terminal.type(text + "\n")


def _is_asked(behind: int, text: str) -> bool:
    return re.search(r"(uit: |\? )$", text[behind:]) is not None


def ends(terminal: Terminal, code: int) -> str:
    text = terminal.read_all()
    assert terminal.process.wait(WAIT_SECONDS) == code, text
    assert "Traceback" not in text
    return text


def test_run_shows_the_plan_and_asks(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": TWO})
    drop(repo / ".patchq", {"y.md": OTHER})
    with on_a_terminal(repo, "run") as terminal:
        first = terminal.read_until(lambda text: text.endswith(QUESTION))
        assert git("rev-parse", "main", cwd=repo) == git("rev-parse", "HEAD", cwd=repo)
        terminal.type("y\n")
        answer(terminal, "n")
        assert "\x1b[2J" not in ends(terminal, 0)
    lines = first.replace("\r", "").splitlines()
    assert "x: Edit a.txt, b.txt" in lines
    assert "  edit 1  replace a.txt" in lines
    assert {"-one", "+1", "-b", "+B"} <= {*lines}
    assert lines[-1].startswith("Land it on main? [y]es, [n]o")
    assert (state(repo, "x"), state(repo, "y")) == ("applied", "proposed")
    assert git("show", "main:b.txt", cwd=repo) == "B"
    assert git("status", "--porcelain", cwd=repo) == ""


def test_some_of_the_edits(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": TWO})
    with on_a_terminal(repo, "run") as terminal:
        answer(terminal, "what", "c", "7", "c", "2", "y")
        text = ends(terminal, 0)
    assert "Which of the edits 1, 2?" in text
    assert "the change has no edit 7" in text
    assert [git("show", f"main:{name}", cwd=repo) for name in ("a.txt", "b.txt")] == [
        "one\ntwo",
        "B",
    ]
    told = report(repo / ".patchq", "x")
    assert told["state"] == "applied"
    assert [edit["state"] for edit in told["edits"]] == ["skipped", "applied"]


@pytest.mark.parametrize("typed", ["q\n", "\x04"], ids=["q", "end of input"])
def test_quit_leaves_it_undecided(repo: Path, typed: str) -> None:
    drop(repo / ".patchq", {"x.md": TWO, "y.md": OTHER})
    start = git("for-each-ref", cwd=repo)
    with on_a_terminal(repo, "run") as terminal:
        terminal.read_until(lambda text: text.endswith(QUESTION))
        terminal.type(typed)
        ends(terminal, 130 if typed == "q\n" else 0)
    assert git("for-each-ref", cwd=repo) == start
    assert not [*(repo / ".patchq").glob("*/*.report.json")]
    with on_a_terminal(repo, "run") as terminal:
        answer(terminal, "y", "y")
        ends(terminal, 0)
    assert (state(repo, "x"), state(repo, "y")) == ("applied", "applied")


def test_what_cannot_land_is_not_asked_about(repo: Path) -> None:
    (repo / "b.txt").write_text("mine\n")
    bad = block("a.txt", "nowhere\n", "x\n")
    drop(repo / ".patchq", {"bad.md": bad, "dirty.md": TWO})
    with on_a_terminal(repo, "run") as terminal:
        text = ends(terminal, 1)
    assert QUESTION not in text
    assert (state(repo, "bad"), state(repo, "dirty")) == ("rejected", "proposed")


@pytest.mark.parametrize("words", [("--json", "run"), ("-q", "run")], ids=["json", "quiet"])
def test_who_does_not_talk_is_not_asked(repo: Path, words: tuple[str, ...]) -> None:
    drop(repo / ".patchq", {"x.md": TWO})
    with on_a_terminal(repo, *words) as terminal:
        assert QUESTION not in ends(terminal, 0)
    assert state(repo, "x") == "proposed"
    drop(repo / ".patchq", {"y.md": OTHER})
    fresh("run", cwd=repo, stdin="y\n")  # without a terminal
    assert state(repo, "y") == "proposed"


# ---------------------------------------------------------------- backups


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    text = "version: 1\nmode: auto\nworktree: {backup: true}\npaths: {review: ['!*.bak.2']}\n"
    files = {"a.txt": "one\n", "d/b [1].txt": "b\n", "gone.txt": "gone\n", ".patchq.yaml": text}
    repo = make_repo(tmp_path / "repo", files)
    patchq("init", cwd=repo)
    return repo


def test_backups_of_what_is_updated(kept: Path) -> None:
    delete = "--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    (kept / "a.txt.bak").write_text("mine\n")
    text = block("a.txt", "one\n", "1\n") + block("d/b [1].txt", "b\n", "B\n")
    patchq("apply", "-", cwd=kept, stdin=text + block("new.txt", "", "n\n") + delete)
    patchq("apply", "-", cwd=kept, stdin=block("a.txt", "1\n", "2\n"))
    copies = {str(path.relative_to(kept)): path.read_text() for path in kept.rglob("*.bak*")}
    assert copies == {
        "a.txt.bak": "mine\n",
        "a.txt.bak.2": "one\n",
        "a.txt.bak.3": "1\n",
        "d/b [1].txt.bak": "b\n",
        "gone.txt.bak": "gone\n",
    }
    assert (kept / "a.txt").read_text() == "2\n"
    assert git("status", "--porcelain", cwd=kept) == ""
