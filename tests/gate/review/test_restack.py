"""Proposals among themselves: who collides with whom, and who follows when the target moves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.api import deciding
from patchq.gate.git.repository import Repository
from patchq.gate.land import board, worker
from tests.gate.review.beside import NUMBERED, TEXT, in_review_mode, moved, sound, told
from tests.helpers.command import block, drop, patchq
from tests.helpers.ending import running, until
from tests.helpers.gitrepo import commit_files, git, tip, write_config
from tests.helpers.sessions import opened
from tests.helpers.stepping import die


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return in_review_mode(tmp_path, {"a.txt": TEXT, "b.txt": TEXT, "dir/c.txt": "c\n"})


def send(repo: Path, **responses: str) -> None:
    """Drop the responses; each comes from the agent `of-<name>`."""
    for name, text in responses.items():
        drop(repo / ".patchq", {f"{name}.md": f"---\nagent: of-{name}\n---\n{text}"})


def run(repo: Path, **responses: str) -> None:
    """Have the responses worked off, one after the other."""
    for name, text in responses.items():
        send(repo, **{name: text})
        patchq("run", cwd=repo, code=None)
    if not responses:
        patchq("run", cwd=repo)


def change(first: int, last: int, path: str = "a.txt") -> str:
    """An edit of these lines, with nothing else in its quote."""
    old = NUMBERED[first - 1 : last]
    return block(path, "".join(old), "".join(line.upper() for line in old))


def pending(repo: Path, id: str) -> list[tuple[Any, ...]]:
    """Own edit and line, and the other's batch, agent, edit, path and lines, of each collision."""
    found = []
    for problem in told(repo, id)["problems"]:
        if problem["code"] == "conflict.pending":
            other = problem["conflicts_with"]
            assert problem["severity"] == "warning"
            assert other["commit"] == told(repo, other["batch"])["commit"]
            lines = tuple(other["lines"]) if other["lines"] else None
            named = (other["batch"], other["agent"], other["edit"], other["path"], lines)
            found.append((problem["edit"], problem["path"], problem["line"], *named))
    return found


def v4a(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


DELETE = v4a("*** Delete File: a.txt")
MAKE = block("new/x.txt", "", "made\n")
RENAME = v4a("*** Update File: a.txt", "*** Move to: z.txt", "@@", "-line 2", "+LINE 2")
WHOLE = ("a.txt", None)
COLLISIONS = {
    "same line": (change(5, 5), change(5, 5), ("a.txt", (5, 5)), ("a.txt", (5, 5))),
    "bordering lines": (change(5, 6), change(7, 8), ("a.txt", (5, 6)), ("a.txt", (7, 8))),
    "edit and deletion": (change(5, 5), DELETE, WHOLE, WHOLE),
    "two creations": (MAKE, block("new/x.txt", "", "other\n"), *[("new/x.txt", None)] * 2),
    "rename and edit": (RENAME, change(15, 15), WHOLE, WHOLE),
    "file and folder": (block("new", "", "made\n"), MAKE, ("new", None), ("new/x.txt", None)),
}


@pytest.mark.parametrize(("x", "y", "at_x", "at_y"), COLLISIONS.values(), ids=COLLISIONS)
@pytest.mark.parametrize("together", [False, True], ids=["one by one", "in one group"])
def test_collision_is_named_in_both_reports(
    repo: Path, x: str, y: str, at_x: tuple[str, Any], at_y: tuple[str, Any], together: bool
) -> None:
    for responses in [{"x": x, "y": y}] if together else [{"x": x}, {"y": y}]:
        send(repo, **responses)
        run(repo)
    line_x, line_y = (lines and lines[0] for _, lines in (at_x, at_y))
    assert pending(repo, "x") == [("1", at_x[0], line_x, "y", "of-y", "1", *at_y)]
    assert pending(repo, "y") == [("1", at_y[0], line_y, "x", "of-x", "1", *at_x)]
    page = (repo / ".patchq/done/x.report.md").read_text()
    assert "Warning" in page
    assert "conflict.pending" in page
    assert "It collides with change" in page


def test_what_does_not_touch_does_not_collide(repo: Path) -> None:
    new = {name: block(f"new/{name}.txt", "", "x\n") for name in ("n", "m")}
    run(repo, x=change(5, 6), y=change(8, 9), z=change(5, 5, "b.txt"), **new)
    assert [pending(repo, id) for id in "xyznm"] == [[]] * 5


@pytest.mark.parametrize("how", ["discard", "delete", "supersede"])
def test_collision_goes_with_the_other_batch(repo: Path, how: str) -> None:
    run(repo, x=change(5, 5), y=change(5, 6), z=change(6, 6))
    assert [row[3] for row in pending(repo, "y")] == ["x", "z"]
    if how == "discard":
        patchq("discard", "x", cwd=repo)
    elif how == "delete":
        git("branch", "-q", "-D", "patchq/x", cwd=repo)
        run(repo)
    else:
        patchq("apply", "-", cwd=repo, stdin=f"---\nretries: x\n---\n{change(1, 1)}")
    assert [row[3] for row in pending(repo, "y")] == ["z"]
    assert told(repo, "x")["state"] in ("discarded", "superseded")
    sound(repo, "y")


def test_the_others_follow_an_accepted_one(repo: Path) -> None:
    base = tip(repo)
    run(repo, x=change(2, 2), y=change(18, 18), z=change(1, 1, "b.txt"))
    before = {id: told(repo, id) for id in "yz"}
    patchq("accept", "x", cwd=repo)
    for id in "yz":
        now = sound(repo, id)
        assert tip(repo, f"patchq/{id}^") == tip(repo)
        made_anew = dict.fromkeys(("commit", "tree", "diff"))
        assert now | made_anew == before[id] | made_anew
        assert now["base"] == {"commit": base, "how": "tip"}
        trailers = git("log", "-1", "--format=%(trailers:only,unfold)", f"patchq/{id}", cwd=repo)
        assert {f"Patchq-Batch: {id}", f"Patchq-Base: {base}"} <= {*trailers.splitlines()}
    patchq("accept", "y", cwd=repo)
    assert told(repo, "y")["commit"] == tip(repo), "the branch itself landed"
    assert git("show", "main:a.txt", cwd=repo).count("LINE") == 2
    assert git("status", "--porcelain", cwd=repo) == ""
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_who_cannot_follow_needs_a_retry(repo: Path) -> None:
    run(repo, x=change(5, 5), y=change(5, 6) + change(12, 12))
    commit = tip(repo, "patchq/y")
    patchq("accept", "x", cwd=repo)
    (problem,) = told(repo, "y")["problems"]
    landed = told(repo, "x")["commit"]
    assert (problem["code"], problem["severity"]) == ("target.moved", "warning")
    assert "conflict.base" in problem["message"]
    assert "patchq retry y" in problem["hint"]
    assert problem["conflicts_with"]["batch"] == "x"
    assert problem["conflicts_with"]["commit"] == landed
    assert tip(repo, "patchq/y") == commit
    now = sound(repo, "y")
    run(repo)
    assert told(repo, "y") == now, "it is said once"


def test_what_was_taken_back_does_not_land_with_a_proposal(repo: Path) -> None:
    run(repo, x=change(5, 5))
    first = tip(repo)
    commit_files(repo, {"b.txt": "b\n"})
    run(repo)
    git("reset", "-q", "--hard", first, cwd=repo)
    patchq("accept", "x", cwd=repo)
    assert git("show", "main:b.txt", cwd=repo) == TEXT.rstrip("\n")
    assert tip(repo, "main^") == first


def test_branch_that_is_checked_out_stays(repo: Path) -> None:
    run(repo, x=change(5, 5))
    git("worktree", "add", "-q", "../look", "patchq/x", cwd=repo)
    commit = commit_files(repo, {"b.txt": "b\n"})
    run(repo)
    (problem,) = moved(repo, "x")
    assert "checked out" in problem["message"]
    sound(repo, "x")
    git("worktree", "remove", "../look", cwd=repo)
    run(repo)
    assert moved(repo, "x") == []
    assert tip(repo, "patchq/x^") == commit
    git("worktree", "add", "-q", "../look", "patchq/x", cwd=repo)
    assert "  patchq/x stays: it is checked out" in patchq("discard", "x", cwd=repo).out


def test_branch_of_a_person_stays(repo: Path) -> None:
    run(repo, x=change(5, 5))
    git("checkout", "-q", "patchq/x", cwd=repo)
    own = commit_files(repo, {"b.txt": "mine\n"})
    git("checkout", "-q", "main", cwd=repo)
    commit_files(repo, {"dir/c.txt": "moved\n"})
    run(repo)
    assert tip(repo, "patchq/x") == own
    patchq("retry", "x", cwd=repo)
    assert told(repo, "x")["state"] == "superseded"
    assert tip(repo, "patchq/x") == own
    sound(repo, "x-2")


def test_what_a_hook_fixes_is_fixed_as_it_lands(repo: Path) -> None:
    stamp = "fixes: true, run: 'echo stamped > stamp.txt'"
    hook = f"{{id: stamp, stage: pre-commit, unconfined: true, {stamp}}}"
    write_config(repo, f"version: 1\nhooks: [{hook}]\n")
    run(repo, x=change(5, 5))
    assert git("show", "patchq/x:stamp.txt", cwd=repo) == "stamped"
    commit = commit_files(repo, {"b.txt": "b\n"})
    run(repo)
    sound(repo, "x")
    assert tip(repo, "patchq/x^") == commit
    patchq("accept", "x", cwd=repo)
    assert git("show", "main:stamp.txt", cwd=repo) == "stamped"


def test_edits_that_were_left_out_stay_out(repo: Path) -> None:
    run(repo, x=change(5, 5) + block("a.txt", "nowhere\n", "x\n"))
    assert told(repo, "x")["state"] == "rejected"
    patchq("retry", "x", "--without", "2", cwd=repo)
    commit = commit_files(repo, {"b.txt": "b\n"})
    run(repo)
    sound(repo, "x-2")
    assert tip(repo, "patchq/x-2^") == commit
    assert [edit["state"] for edit in told(repo, "x-2")["edits"]] == ["applied", "skipped"]


@pytest.mark.parametrize("settle", ["run", "accept", "discard"])
@pytest.mark.parametrize("step", range(3), ids=["mark", "branch", "report"])
def test_death_between_two_steps_is_put_right(repo: Path, step: int, settle: str) -> None:
    run(repo, x=change(2, 2), y=change(18, 18))
    die(repo, f"{step}@y", "accept", "x")
    patchq(*(("run",) if settle == "run" else (settle, "y")), cwd=repo)
    patchq("run", cwd=repo)
    assert told(repo, "x")["state"] == "accepted"
    if settle == "run":
        sound(repo, "y")
        assert tip(repo, "patchq/y^") == tip(repo)
        assert told(repo, "y")["problems"] == []
        patchq("accept", "y", cwd=repo)
    if settle == "discard":
        assert told(repo, "y")["state"] == "discarded"
    else:
        assert told(repo, "y")["state"] == "accepted"
        assert told(repo, "y")["commit"] == tip(repo)
        assert [edit["state"] for edit in told(repo, "y")["edits"]] == ["applied"]
    assert git("for-each-ref", "refs/heads/patchq/y", "refs/patchq/waiting/y", cwd=repo) == ""
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_what_is_discarded_while_the_hooks_of_accept_run_does_not_land(repo: Path) -> None:
    run(repo, x=change(2, 2))
    mark, before = repo / ".git/mark", tip(repo)
    mark.touch()
    slow = f"run: 'while test -e {mark}; do sleep 0.05; done'"
    hook = f"{{id: slow, stage: pre-commit, unconfined: true, {slow}}}"
    write_config(repo, f"version: 1\nhooks: [{hook}]\n")
    words = [sys.executable, "-m", "patchq", "accept", "x"]
    with running(words, cwd=repo, stderr=subprocess.PIPE, text=True) as process:
        threads = Path(f"/proc/{process.pid}/task")
        until(lambda: any(file.read_text() for file in threads.glob("*/children")))
        patchq("discard", "x", cwd=repo)
        mark.unlink()
        _, said = process.communicate(timeout=60)
    assert (process.returncode, "it is discarded" in said) == (2, True), said
    assert (tip(repo), told(repo, "x")["state"]) == (before, "discarded")
    assert told(repo, "x")["hooks"] == []  # what is decided is not written into


def test_what_was_discarded_beside_a_daemon_is_named_by_nobody(repo: Path) -> None:
    session = opened(repo, "mode: review")
    session.queue.acquire()
    named = []
    for name, gone in ("one", ""), ("two", "one"), ("three", ""):
        if gone:
            patchq("discard", gone, cwd=repo)
        send(repo, **{name: change(5, 5)})
        worker.turn(session, lambda report: None)
        named.append([found[3] for found in pending(repo, name)])
    session.queue.release()
    session.close()
    assert named == [[], [], ["two"]]
    assert [found[3] for found in pending(repo, "two")] == ["three"]


def test_a_lasting_process_foresees_what_came_meanwhile(repo: Path) -> None:
    session, named = opened(repo, "mode: review"), []
    for name in ("one", "two"):
        run(repo, **{name: change(5, 5)})
        foreseen = deciding.foresee(session, change(5, 5).encode(), "x.md", corrects=False)
        named.append([one.conflicts_with.batch for one in foreseen.problems if one.conflicts_with])
    session.close()
    assert named == [["one"], ["one", "two"]]


def test_a_process_reads_no_proposal_anew_unless_something_happened(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(repo, one=change(5, 5), two=change(5, 5), three=change(5, 5))
    read: list[str] = []
    changed_files = board.changed_files

    def counted(repo: Repository, commit: str) -> dict[str, board.Blobs]:
        read.append(commit)
        return changed_files(repo, commit)

    monkeypatch.setattr(board, "changed_files", counted)
    for gone, left in ("", {"one", "two", "three"}), ("two", {"one", "three"}):
        if gone:
            patchq("discard", gone, cwd=repo)
        session = opened(repo, "mode: review")
        names = {id: set(others) for id, others in board.current(session).names.items()}
        session.close()
        assert names == {id: left - {id} for id in left}
        assert len(read) == (len(left) if gone else 0)
