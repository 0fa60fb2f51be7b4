"""`patchq fsck`: every kind of damage is found, and what can be derived comes back."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, drop, give, patchq, report
from tests.helpers.gitrepo import git, make_repo, shell, write_config
from tests.helpers.stores import sql

BODY = block("a.txt", "a\n", "A\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fsck") / "repo"


@pytest.fixture
def repo(finished: Path, tmp_path: Path) -> Path:
    """A repository and queue with a batch in each state, made once."""
    if not finished.exists():
        _make(finished)
    return shutil.copytree(finished, tmp_path / "repo", symlinks=True)


def _make(repo: Path) -> None:
    make_repo(repo, {f"{name}.txt": f"{name}\n" for name in "abcdefg"})
    patchq("init", cwd=repo)
    _batch(repo, "applied", "a", "auto")
    _batch(repo, "accepted", "b")
    patchq("accept", "accepted", cwd=repo)
    _batch(repo, "discarded", "c")
    patchq("discard", "discarded", cwd=repo)
    _batch(repo, "waits", "d")
    _batch(repo, "superseded", "e")
    patchq("retry", "superseded", cwd=repo)
    _batch(repo, "reverted", "f", "auto")
    patchq("revert", "reverted", cwd=repo)
    give(repo, "refused", block("g.txt", "nowhere\n", "x\n"), code=1)
    give(repo, "held", f"---\ndepends_on: [later]\n---\n{BODY}")


def _batch(repo: Path, id: str, path: str, mode: str = "review") -> None:
    write_config(repo, f"version: 1\nmode: {mode}\n")
    give(repo, id, block(f"{path}.txt", f"{path}\n", f"{path.upper()}\n"))


def fsck(repo: Path, *words: str, code: int | None = None) -> list[dict[str, Any]]:
    told = patchq("--json", "fsck", *words, cwd=repo, code=code).json()
    damage: list[dict[str, Any]] = told["damage"]
    assert told["ok"] == all(each["repaired"] for each in damage)
    return damage


def forget(repo: Path, id: str) -> None:
    """Have the store lose a batch."""
    number = "(select number from responses where id = ?)"
    sql(repo / ".patchq", f"delete from papers where number = {number}", id)
    sql(repo / ".patchq", "delete from responses where id = ?", id)


WITHOUT_MARK = "git update-ref -d refs/patchq/waiting/waits"
EMPTY_BRANCH = ": > .git/refs/heads/patchq/waits"
MENDED = {
    "page": ("rm .patchq/done/applied.report.md", "file.missing"),
    "report that is torn": ("echo '{' > .patchq/done/applied.report.json", "file.differs"),
    "response": ("rm .patchq/done/applied.md", "file.missing"),
    "change that the store does not know": ("", "file.unknown"),
    "mark": (WITHOUT_MARK, "mark.missing"),
    "notes": ("git update-ref -d refs/notes/patchq", "note.missing"),
    "report of a held change": ("rm .patchq/active/held.report.json", "file.missing"),
    "empty branch": (EMPTY_BRANCH, "ref.broken"),
    "empty notes": (": > .git/refs/notes/patchq", "ref.broken"),
}


@pytest.mark.parametrize("case", MENDED)
def test_damage_is_mended(repo: Path, case: str) -> None:
    script, kind = MENDED[case]
    paths = (path for path in repo.glob(".patchq/done/*.md") if ".report." not in path.name)
    bodies = {path.name: path.read_bytes() for path in paths}
    shell(script, repo)
    if not script:
        forget(repo, "refused")
    found = fsck(repo, code=1)
    assert kind in {each["kind"] for each in found}
    assert {each["cure"] for each in found} == {"patchq fsck --repair"}
    assert all(each["repaired"] for each in fsck(repo, "--repair", code=0))
    assert fsck(repo, code=0) == []
    git("rev-parse", "--verify", "-q", "refs/heads/patchq/superseded-2", cwd=repo)
    done = {id: repo / f".patchq/done/{id}.report.json" for id in ("applied", "superseded-2")}
    states = {id: json.loads(path.read_bytes())["state"] for id, path in done.items()}
    assert states == {"applied": "applied", "superseded-2": "proposed"}
    assert {name: (repo / ".patchq/done" / name).read_bytes() for name in bodies} == bodies
    git("fsck", "--strict", "--no-dangling", cwd=repo)


def test_damage_discards_nothing(repo: Path) -> None:
    """A branch that is gone counts as discarded by hand; one that cannot be read does not."""
    shell(EMPTY_BRANCH, repo)
    fsck(repo, "--repair", code=0)
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "waits")["state"] == "proposed"
    assert patchq("accept", "waits", cwd=repo).out.startswith("accepted")


def test_a_mend_that_fails_is_told_and_keeps_none_from_the_others(repo: Path) -> None:
    shell(f"rm .patchq/done/applied.report.md; {WITHOUT_MARK}", repo)
    (repo / ".git/refs/patchq/waiting/waits.lock").touch()
    found = {each["kind"]: each for each in fsck(repo, "--repair", code=1)}
    assert found["file.missing"]["repaired"]
    assert "waits.lock" in found["mark.missing"]["cure"]


def test_the_queue_is_gone(repo: Path) -> None:
    shutil.rmtree(repo / ".patchq")
    patchq("init", cwd=repo)
    patchq("run", cwd=repo)
    for id in ("waits", "superseded-2"):
        assert report(repo / ".patchq", id)["state"] == "proposed"
    assert patchq("discard", "superseded-2", cwd=repo).out.startswith("discarded")
    git("merge", "-q", "--no-edit", "patchq/waits", cwd=repo)
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "waits")["state"] == "accepted"
    assert fsck(repo, code=0) == []


def test_the_id_of_a_commit_is_never_given_again(repo: Path) -> None:
    forget(repo, "applied")
    shell("rm .patchq/done/applied.*", repo)
    (found,) = fsck(repo, code=1)
    assert (found["kind"], found["where"]) == ("batch.unknown", "applied")
    fsck(repo, "--repair", code=0)
    assert fsck(repo, code=0) == []
    drop(repo / ".patchq", {"applied.md": block("another.txt", "", "x\n")})
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "applied-2")["edits"][0]["path"] == "another.txt"


def test_a_response_that_nobody_knows_the_verdict_of_gets_another_one(repo: Path) -> None:
    body = (repo / ".patchq/rejected/refused.md").read_bytes()
    forget(repo, "refused")
    shell("echo '{' > .patchq/rejected/refused.report.json", repo)
    fsck(repo, "--repair", code=0)
    assert (repo / ".patchq/inbox/refused.md").read_bytes() == body
    patchq("run", cwd=repo, code=1)
    again = json.loads((repo / ".patchq/rejected/refused.report.json").read_bytes())
    assert again["state"] == "rejected"
    assert fsck(repo, code=0) == []


def lone(repo: Path) -> None:
    """In place of all that, one batch which landed."""
    shutil.rmtree(repo)
    make_repo(repo, {"g.txt": "g\n"})
    patchq("init", cwd=repo)
    _batch(repo, "late", "g", "auto")


PRUNE = "git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now"


def test_a_landed_commit_that_was_rewritten_and_pruned(repo: Path) -> None:
    lone(repo)
    shell(f"git commit -q --amend --no-edit --date=2001-01-01T00:00:00Z; {PRUNE}", repo)
    assert fsck(repo, code=0) == []
    patchq("revert", "late", cwd=repo)
    assert git("show", "main:g.txt", cwd=repo) == "g"


def test_a_commit_that_is_nowhere(repo: Path) -> None:
    lone(repo)
    shell(f"git update-ref refs/heads/main main~1; {PRUNE}", repo)
    for words in ((), ("--repair",)):
        (found,) = fsck(repo, *words, code=1)
        assert (found["kind"], found["repaired"]) == ("commit.missing", False)
        assert "git fsck --lost-found" in found["cure"]
    assert "DAMAGED" in patchq("fsck", cwd=repo, code=1).out


def test_it_does_not_repair_beside_a_daemon(repo: Path) -> None:
    patchq("watch", "--detach", cwd=repo)
    try:
        patchq("fsck", "--repair", cwd=repo, code=75)
        assert fsck(repo, code=0) == []
    finally:
        patchq("stop", cwd=repo)


def test_a_line_of_packed_refs_that_is_no_ref_is_named(repo: Path) -> None:
    shell("git pack-refs --all; echo garbage line >> .git/packed-refs", repo)
    for words in ((), ("--repair",)):
        (found,) = fsck(repo, *words, code=1)
        assert found["kind"] == "ref.packed"
        assert "'garbage line'" in found["message"]
        assert "correct the line" in found["cure"]


GOOD = {"accepted": "accepted", "waits": "proposed", "refused": "rejected"}


def states(repo: Path) -> dict[str, str]:
    return {id: patchq("--json", "status", id, cwd=repo).json()["state"] for id in GOOD}


def test_removed_store_is_made_again_before_work(repo: Path) -> None:
    shell("rm .patchq/store.db*", repo)
    drop(repo / ".patchq", {"accepted.md": block("b.txt", "b\n", "B\n"), "refused.md": "another"})
    patchq("run", cwd=repo, code=1)
    assert states(repo) == GOOD
    assert report(repo / ".patchq", "accepted-2")["duplicate_of"] == "accepted"
    assert report(repo / ".patchq", "refused-2")["state"] == "rejected"
    assert patchq("fsck", cwd=repo).code == 0


def test_damaged_store_is_told_and_repaired(repo: Path) -> None:
    path = repo / ".patchq/store.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    failed = patchq("run", cwd=repo, code=3)
    assert "patchq fsck --repair" in failed.err
    (damage,) = patchq("--json", "fsck", "--repair", cwd=repo).json()["damage"]
    assert damage["kind"] == "store.broken"
    assert list((repo / ".patchq/damaged").glob("*/store.db*"))
    assert states(repo) == GOOD
    assert patchq("fsck", cwd=repo).code == 0


def test_store_of_another_version_is_refused_with_the_cure(repo: Path) -> None:
    sql(repo / ".patchq", "pragma user_version = 99")
    failed = patchq("status", cwd=repo, code=2)
    assert "version 99" in failed.err
    assert "patchq fsck --repair" in failed.err
    patchq("fsck", "--repair", cwd=repo)
    assert states(repo) == GOOD


def test_locked_store_waits_and_then_says_so(repo: Path) -> None:
    drop(repo / ".patchq", {"new.md": block("new.txt", "", "new\n")})
    with closing(sqlite3.connect(repo / ".patchq/store.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        assert "locked" in patchq("run", cwd=repo, code=3).err
        other.execute("rollback")
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "new")["state"] == "applied"


def test_backup_can_be_put_back(repo: Path, tmp_path: Path) -> None:
    patchq("backup", str(tmp_path / "copy"), cwd=repo)
    assert "is there already" in patchq("backup", str(tmp_path / "copy"), cwd=repo, code=2).err
    told = patchq("backup", str(tmp_path / "nowhere/copy"), cwd=repo, code=2).err
    assert f"{tmp_path}/nowhere/copy cannot be written: No such file" in told
    shell("rm .patchq/store.db*", repo)
    shutil.copy(tmp_path / "copy", repo / ".patchq/store.db")
    assert states(repo) == GOOD
    assert patchq("fsck", cwd=repo).code == 0


def test_readers_work_where_nothing_can_be_written(repo: Path) -> None:
    mount = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1"'
    script = f'{mount} && exec "$2" -m patchq log'
    words = ["unshare", "-rm", "sh", "-c", script, "sh", str(repo), sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.fail(f"this machine cannot mount: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert "accepted" in done.stdout
