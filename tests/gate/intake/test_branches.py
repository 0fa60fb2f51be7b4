"""`branches: ["agent/*"]`: branches are handed in by themselves, each tip once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gate.service.test_daemon import wait_for, watching
from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, operators_file, write_config
from tests.helpers.stores import sql

LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": LINES, "b.txt": LINES})
    patchq("init", cwd=repo)
    write_config(repo, 'version: 1\ntarget: main\nbranches: ["agent/*"]\n')
    git("add", ".patchq.yaml", cwd=repo)
    git("commit", "-q", "-m", "Configure", cwd=repo)
    return repo


def agent(repo: Path, name: str = "x") -> Path:
    there = repo.parent / name
    git("worktree", "add", "-q", "-b", f"agent/{name}", str(there), cwd=repo)
    return there


def change(there: Path, line: int, text: str = "") -> str:
    new = (there / "a.txt").read_text().split("\n")
    new[line - 1] = text or f"LINE {line}"
    return commit_files(there, {"a.txt": "\n".join(new)}, f"Change line {line}")


def branches(repo: Path) -> dict[str, dict[str, Any]]:
    told = patchq("--json", "status", cwd=repo).json()["branches"]
    return {branch["branch"]: branch for branch in told}


def waiting(repo: Path) -> list[str]:
    return [it["id"] for it in patchq("--json", "status", cwd=repo).json()["waiting"]]


def run(repo: Path) -> list[str]:
    """Work off what there is; the verdicts."""
    out = patchq("run", cwd=repo, code=None).out
    return [" ".join(line.split()[:2]) for line in out.splitlines()]


def test_a_branch_that_moves_supersedes_what_it_proposed(repo: Path) -> None:
    there = agent(repo)
    change(there, 2)
    assert branches(repo)["agent/x"]["state"] == "waits"
    assert run(repo) == ["proposed agent-x"]
    assert run(repo) == []  # never twice
    assert git("show", "patchq/agent-x:a.txt", cwd=repo) == (there / "a.txt").read_text()[:-1]
    change(there, 9)
    assert run(repo) == ["proposed agent-x-2"]
    change(there, 12, "<<<<<<< HEAD")
    git("commit", "-q", "--amend", "-m", "Change it all", cwd=there)
    assert run(repo) == ["proposed agent-x-3"]
    assert waiting(repo) == ["agent-x-3"]
    assert report(repo / ".patchq", "agent-x")["duplicate_of"] == "agent-x-2"
    told = branches(repo)["agent/x"]
    assert (told["state"], told["batch"]) == ("taken", "agent-x-3")
    patchq("accept", "agent-x-3", cwd=repo)
    change(there, 15)
    assert run(repo) == ["proposed agent-x-4"]
    assert report(repo / ".patchq", "agent-x-4")["retry"]["of"] is None
    assert [edit["lines"] for edit in report(repo / ".patchq", "agent-x-4")["edits"]]


def test_a_refused_tip_does_not_keep_the_next_from_its_proposal(repo: Path) -> None:
    there = agent(repo)
    change(there, 2)
    assert run(repo) == ["proposed agent-x"]
    commit_files(there, {".env": "x=1\n"})
    assert run(repo) == ["rejected agent-x-2"]
    git("rm", "-q", ".env", cwd=there)
    git("commit", "-q", "-m", "Leave it", cwd=there)
    assert run(repo) == ["proposed agent-x-3"]
    assert waiting(repo) == ["agent-x-3"]


def test_work_in_hand_is_waited_for(repo: Path) -> None:
    there = agent(repo)
    change(there, 2)
    (there / "new.txt").write_text("not committed\n")
    assert run(repo) == []
    told = branches(repo)["agent/x"]
    assert told["state"] == "waits"
    assert str(there) in told["why"]
    (there / "new.txt").unlink()
    gitdir = Path(git("rev-parse", "--absolute-git-dir", cwd=there))
    (gitdir / "MERGE_HEAD").write_text("x\n")
    assert run(repo) == []
    assert "merging" in branches(repo)["agent/x"]["why"]
    (gitdir / "MERGE_HEAD").unlink()
    assert run(repo) == ["proposed agent-x"]


def test_what_is_turned_away_and_what_never_matches(repo: Path) -> None:
    with operators_file(repo).open("a") as config:
        config.write('targets: ["release/*"]\nlimits: {file_bytes: 4000}\n')
    text = operators_file(repo).read_text().replace("agent/*", "*")
    commit_files(repo, {".patchq.yaml": text})
    git("branch", "release/1", cwd=repo)
    git("branch", "agent/none", cwd=repo)
    git("branch", "patchq/mine", cwd=repo)
    git("symbolic-ref", "refs/heads/agent/link", "refs/heads/main", cwd=repo)
    git("checkout", "-q", "--orphan", "agent/else", cwd=repo)
    commit_files(repo, {"a.txt": "else\n"})
    git("checkout", "-q", "main", cwd=repo)
    merging, large = agent(repo, "merging"), agent(repo, "large")
    change(merging, 2)
    side = git("commit-tree", "HEAD^{tree}", "-p", "main", "-m", "Side", cwd=repo)
    git("merge", "-q", "--no-ff", "-m", "Merge", side, cwd=merging)
    commit_files(large, {"large.txt": "x" * 5000})
    one = agent(repo, "one")
    change(one, 3)
    git("branch", "agent/two", "agent/one", cwd=repo)
    assert run(repo) == ["proposed agent-one"]
    told = {name: (it["state"], it["why"]) for name, it in branches(repo).items()}
    assert told.keys() == {f"agent/{n}" for n in ("none", "else", "merging", "large", "one", "two")}
    for name, why in {
        "none": "no commit that main has not",
        "else": "no commit in common",
        "merging": "holds the merge",
        "large": "limits.file_bytes",
        "two": "agent/one was taken at this very commit",
    }.items():
        assert told[f"agent/{name}"][0] == "turned away"
        assert why in str(told[f"agent/{name}"][1])


def test_a_deleted_branch_is_known_as_long_as_its_change_waits(repo: Path) -> None:
    change(agent(repo), 2)
    assert run(repo) == ["proposed agent-x"]
    git("branch", "-m", "agent/x", "agent/y", cwd=repo)
    assert run(repo) == []
    told = branches(repo)
    assert [told[f"agent/{name}"]["state"] for name in "xy"] == ["gone", "turned away"]
    patchq("discard", "agent-x", cwd=repo)
    run(repo)
    assert branches(repo).keys() == {"agent/y"}


def test_a_ref_that_cannot_be_read_stops_nothing_else(repo: Path) -> None:
    there = agent(repo)
    broken = repo / ".git/refs/heads/agent/bad"
    change(there, 2)
    for text, answer in (("garbage\n", []), ("1" * 40 + "\n", ["proposed agent-x"])):
        broken.write_text(text)
        assert run(repo) == answer
        patchq("status", cwd=repo)
    assert "cannot read object" in str(branches(repo)["agent/bad"]["why"])
    assert patchq("--json", "status", cwd=repo).json()["troubles"] == []


def test_a_response_that_a_crash_kept_from_the_inbox_is_made_again(repo: Path) -> None:
    there, root = agent(repo), repo / ".patchq"
    change(there, 2)
    assert run(repo) == ["proposed agent-x"]
    tip = change(there, 3)
    # It was noted, and the process died before the response was dropped.
    ((told,),) = sql(root, "select value from meta where key = 'heads'")
    (head,) = json.loads(told).values()
    lost = {**head, "tip": tip, "source": "0" * 64, "file": "lost.md", "retries": "agent-x"}
    sql(root, "update meta set value = ? where key = 'heads'", json.dumps({"agent/x": lost}))
    (there / "new.txt").write_text("not committed\n")
    assert run(repo) == []
    assert branches(repo)["agent/x"]["state"] == "waits"
    (there / "new.txt").unlink()
    assert run(repo) == ["proposed agent-x-2"]
    assert waiting(repo) == ["agent-x-2"]
    # It was dropped, and the process died then.
    change(there, 4)
    assert patchq("--json", "status", cwd=repo).json()["inbox"] == 0
    assert run(repo) + run(repo) == ["proposed agent-x-3"]


def test_the_daemon_takes_a_branch_once_it_is_committed_to(repo: Path) -> None:
    there = agent(repo)
    with watching(repo):
        change(there, 2)
        wait_for(lambda: waiting(repo) == ["agent-x"])
        change(there, 3)
        wait_for(lambda: waiting(repo) == ["agent-x-2"])
    assert branches(repo)["agent/x"]["batch"] == "agent-x-2"
