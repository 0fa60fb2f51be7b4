"""`confirm: true`: a person at a terminal decides; where nobody is, a response is proposed.  And
`worktree.backup: true`: copies of what a landing updates."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.command import block, drop, fresh, patchq, report
from tests.helpers.gitrepo import git, make_repo
from tests.helpers.terminal import WAIT_SECONDS, on_a_terminal

TWO = block("a.txt", "one\n", "1\n") + block("b.txt", "b\n", "B\n")
OTHER = block("c.txt", "", "c\x1b[2J\n")
QUESTION, ASKED = "[q]uit: ", re.compile(r"(uit: |\? )$")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    text = "version: 1\nmode: auto\nconfirm: true\n"
    files = {"a.txt": "one\ntwo\n", "b.txt": "b\n", ".patchq.yaml": text}
    repo = make_repo(tmp_path / "repo", files)
    patchq("init", cwd=repo)
    return repo


def states(repo: Path, *ids: str) -> list[str]:
    return [report(repo / ".patchq", id)["state"] for id in ids]


def run(repo: Path, *answers: str, flag: str = "-v", code: int = 0) -> str:
    """What `run` prints on a terminal, where each question gets its answer."""
    with on_a_terminal(repo, flag, "run") as terminal:
        for answer in answers:
            terminal.read_until(partial(ASKED.search, pos=len(terminal.text)))
            terminal.type(answer)
        text = terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == code, text
    assert "Traceback" not in text
    return text


def test_run_shows_the_plan_and_asks(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": TWO})
    drop(repo / ".patchq", {"y.md": OTHER})
    text = run(repo, "y\n", "n\n")
    assert "\x1b[2J" not in text
    lines = text.replace("\r", "").splitlines()
    shown = {"x: Edit a.txt, b.txt", "  edit 1  replace a.txt", "-one", "+1", "-b", "+B"}
    assert shown <= {*lines}
    assert any(line.startswith("Land it on main? [y]es, [n]o") for line in lines)
    assert states(repo, "x", "y") == ["applied", "proposed"]
    assert git("show", "main:b.txt", cwd=repo) == "B"
    assert git("status", "--porcelain", cwd=repo) == ""


def test_some_of_the_edits(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": TWO})
    text = run(repo, "what\n", "c\n", "7\n", "c\n", "2\n", "y\n")
    assert "Which of the edits 1, 2?" in text
    assert "the change has no edit 7" in text
    assert git("show", "main:a.txt", "main:b.txt", cwd=repo) == "one\ntwo\nB"
    told = report(repo / ".patchq", "x")
    assert told["state"] == "applied"
    assert [edit["state"] for edit in told["edits"]] == ["skipped", "applied"]


@pytest.mark.parametrize(("typed", "code"), [("q\n", 130), ("\x04", 0)], ids=["q", "end of input"])
def test_quit_leaves_it_undecided(repo: Path, typed: str, code: int) -> None:
    drop(repo / ".patchq", {"x.md": TWO, "y.md": OTHER})
    start = git("for-each-ref", cwd=repo)
    run(repo, typed, code=code)
    assert git("for-each-ref", cwd=repo) == start
    assert not [*(repo / ".patchq").glob("*/*.report.json")]
    run(repo, "y\n", "y\n")
    assert states(repo, "x", "y") == ["applied", "applied"]


def test_nobody_is_asked_of_what_cannot_land_or_where_nobody_talks(repo: Path) -> None:
    (repo / "b.txt").write_text("mine\n")
    bad = block("a.txt", "nowhere\n", "x\n")
    drop(repo / ".patchq", {"bad.md": bad, "dirty.md": TWO})
    assert QUESTION not in run(repo, code=1)
    assert states(repo, "bad", "dirty") == ["rejected", "proposed"]
    for flag in ("--json", "-q"):
        drop(repo / ".patchq", {f"x{flag}.md": block(f"new{flag}.txt", "", "x\n")})
        assert QUESTION not in run(repo, flag=flag)
    drop(repo / ".patchq", {"y.md": OTHER})
    fresh("run", cwd=repo, stdin="y\n")  # without a terminal
    assert states(repo, "x--json", "x-q", "y") == ["proposed"] * 3


def test_backups_of_what_is_updated(tmp_path: Path) -> None:
    text = "version: 1\nmode: auto\nworktree: {backup: true}\npaths: {review: ['!*.bak.2']}\n"
    files = {"a.txt": "one\n", "d/b [1].txt": "b\n", "gone.txt": "gone\n", ".patchq.yaml": text}
    kept = make_repo(tmp_path / "repo", files)
    patchq("init", cwd=kept)
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
