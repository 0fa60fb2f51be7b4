"""`patchq doctor`: each thing that is wrong, or weaker than it could be, with its cure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.config.schema import Config, Queue
from patchq.gate.errors import UsageError
from patchq.gate.git.repository import Repository
from patchq.gate.hooks.sandbox import no_sandbox
from patchq.gate.queue import spool
from patchq.gate.service.check import doctor as checks
from tests.helpers.command import fresh, patchq
from tests.helpers.gitrepo import make_repo, operators_file, write_config


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "a\n"})
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").rename(operators_file(repo))
    return repo


def doctor(repo: Path, *words: str, code: int, run: Any = patchq) -> dict[str, dict[str, Any]]:
    """What was found, by its names; of several of one name, the worst."""
    told = run("--json", "doctor", *words, cwd=repo, code=code).json()
    assert told["ok"] == (code == 0)
    order = ["ok", "weaker", "todo", "fatal"]
    found = sorted(told["findings"], key=lambda finding: order.index(finding["level"]))
    assert all(finding["cure"] for finding in found if finding["level"] != "ok")
    return {finding["what"]: finding for finding in found}


def test_all_is_well(repo: Path) -> None:
    before = sorted(repo.rglob("*"))
    found = doctor(repo, code=0)
    assert {finding["level"] for finding in found.values()} <= {"ok", "weaker"}
    assert {name.partition(".")[0] for name in found} >= {
        "config", "repository", "queue", "system", "git", "hooks",
    }  # fmt: skip
    left = {path for path in repo.rglob("*") if path.name != "hooks"}
    assert left <= set(before), "what was tried out is gone"
    out = patchq("doctor", cwd=repo).out
    assert re.search("ok +queue.there +the queue is there", out)


def test_a_machine_without_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(repo))
    found = doctor(repo, code=1)
    assert "there is no git on the PATH" in found["git.version"]["message"]
    assert found["git.version"]["cure"].startswith("install git")


@pytest.mark.parametrize(
    ("setting", "cure"),
    [
        ("refStorage = reftable", "refs migrate"),
        ("objectFormat = sha256", "SHA-1"),
        ("partialClone = origin", "--unset extensions.partialClone"),
    ],
)
def test_repository_that_cannot_be_opened(repo: Path, setting: str, cure: str) -> None:
    with (repo / ".git/config").open("a") as config:
        config.write(f"[core]\n\trepositoryformatversion = 1\n[extensions]\n\t{setting}\n")
    found = doctor(repo, code=1)
    assert found["repository.format"]["level"] == "fatal"
    assert cure in found["repository.format"]["cure"]


def test_hook_that_cannot_start(repo: Path) -> None:
    text = "hooks: [{id: tests, stage: pre-commit, run: no-such-program --all}]\n"
    write_config(repo, text)
    found = doctor(repo, code=1)["hooks.commands"]
    assert found["level"] == "fatal"
    assert "no-such-program" in found["message"]
    doctor(repo, "--before-start", code=1)


@pytest.mark.parametrize("cure", ["unset PATCHQ_NO_SANDBOX", "apt install bubblewrap"])
def test_hooks_without_a_sandbox(
    repo: Path, tmp_path: Path, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cure.startswith("unset"):
        monkeypatch.setenv("PATCHQ_NO_SANDBOX", "1")
    else:
        (tmp_path / "bin").mkdir()
        for name in ("git", "sh"):
            (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    sandbox = doctor(repo, run=fresh, code=0)["hooks.sandbox"]
    assert sandbox["level"] == "weaker"
    assert "reach the network" in sandbox["message"]
    assert sandbox["cure"] == cure
    line = fresh("init", cwd=repo).out.splitlines()[-1]
    assert re.fullmatch(f"hooks have no sandbox, as .*`unconfined: true`.*; {cure}", line)


def test_no_queue(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "fresh")
    assert doctor(repo, code=1)["queue.there"]["cure"] == "make it: patchq init"
    assert not (repo / ".patchq").exists()
    doctor(repo, "--before-start", code=0)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 9 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=9m", "none", str(place)]
    if subprocess.run(command, capture_output=True, timeout=60).returncode:
        pytest.skip("needs to mount a tmpfs")
    yield place
    subprocess.run(["umount", "-l", place], check=True, timeout=60)


def test_queue_on_a_small_file_system(repo: Path, small: Path) -> None:
    write_config(repo, f"queue: {{path: {small}/q}}\n")
    patchq("init", cwd=repo)
    (small / "rest").write_bytes(bytes(8 << 20))
    found = doctor(repo, code=1)
    assert found["queue.space"]["level"] == "todo"
    assert " MiB and " in found["queue.space"]["message"]


def test_queue_that_cannot_be_written(repo: Path) -> None:
    (repo / ".patchq/active").rmdir()
    (repo / ".patchq/active").symlink_to("nowhere")
    found = doctor(repo, code=1)["queue.there"]
    assert found["level"] == "fatal"
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(found["cure"], shell=True, cwd=repo, env=env, timeout=60, check=True)
    assert doctor(repo, code=0)["queue.there"]["level"] == "ok"


def test_file_system_that_is_mounted_read_only(small: Path) -> None:
    repo = make_repo(small / "repo", {"a.txt": "a\n"})
    patchq("init", cwd=repo)
    subprocess.run(["mount", "-o", "remount,ro", small], check=True, timeout=60)
    found = doctor(repo, code=1)
    for what in ("repository.links", "queue.works"):
        assert "mounted to be written" in found[what]["cure"]
    assert patchq("fsck", cwd=repo).out == "queue and repository agree\n"


def test_a_network_file_system_is_refused_unless_it_is_allowed(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "file_system", lambda path: "nfs4")
    with pytest.raises(UsageError, match="nfs4"):
        spool.refuse_network(repo / ".patchq")
    (check,) = [check for check in checks.QUEUE_CHECKS if check.what == "queue.network"]
    for allowed, level in ((False, "fatal"), (True, "weaker")):
        config = Config(queue=Queue(network_disk=allowed))
        place = checks.Place(Repository.open(repo), repo, repo / ".patchq", config, "main")
        assert [finding.level for finding in check.findings(place)] == [level]


def test_what_other_systems_lack_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    found = {finding.what: finding for finding in checks.of_any_machine()}
    assert {name for name, finding in found.items() if finding.level == "weaker"} >= {
        "system.leases", "system.flush", "system.watching",
    }  # fmt: skip
    assert "F_FULLFSYNC" in found["system.flush"].message
    assert no_sandbox()[1] == "run patchq on Linux"
