"""A database that carries the queue of another repository."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.gate.service.test_cluster import CONFIG, FILES, landed, machines, states
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config
from tests.helpers.machines import Machines

__all__ = ["machines"]


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A clone of another remote, with a branch and files of the same names."""
    seed = make_repo(tmp_path / "other", {})
    commit_files(seed, {**FILES, "more.txt": "more\n"})
    git("clone", "-q", "--bare", "other", "other.git", cwd=tmp_path)
    git("clone", "-q", "other.git", "stranger", cwd=tmp_path)
    write_config(tmp_path / "stranger", f"version: 1\ntarget: main\n{CONFIG}")
    patchq("init", cwd=tmp_path / "stranger")
    return tmp_path / "stranger"


def test_nobody_of_another_repository_decides_or_enters(
    machines: Machines, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHQ_DATABASE", machines.database)
    machines.start("feeder", "watch")
    queue = machines.clone("feeder") / ".patchq"
    drop(queue, {"x.md": block("a.txt", "two\n", "2\n")})
    with psycopg.connect(machines.database, autocommit=True) as connection:
        entered = "select count(*) from responses"
        machines.soon(lambda: connection.execute(entered).fetchone() == (1,))
        drop(stranger / ".patchq", {"y.md": block("a.txt", "two\n", "deux\n")})
        for verb in ("worker", "watch", "run"):
            told = patchq(verb, cwd=stranger, code=2).err
            assert "the queue of another repository" in told
            assert "Traceback" not in told
        assert connection.execute(entered).fetchone() == (1,)
    told = patchq("doctor", "--json", cwd=stranger, code=1).json()["findings"]
    [found] = [one for one in told if one["what"] == "cluster.repository"]
    assert (found["level"], "schema" in found["cure"]) == ("fatal", True)
    assert git("log", "--format=%s", "main", cwd=stranger.parent / "other.git").count("\n") <= 1
    left = [path.name for path in (stranger / ".patchq").glob("[ai]*/*.md")]
    assert any(name.endswith("y.md") for name in left), left
    machines.start("w1", "worker", "--name", "w1")
    machines.soon(lambda: states(machines, "x") == ["applied"])
    assert landed(machines) == ["x"]
    assert report(queue, "x")["target"] == "main"
