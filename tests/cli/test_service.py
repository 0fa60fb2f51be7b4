"""`patchq service`: the unit that systemd is given, and what is said where there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from patchq.cli.serve import unit_text
from tests.helpers.command import patchq
from tests.helpers.gitrepo import make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "a repository", {"a.txt": "one\n"})
    patchq("init", cwd=repo)
    return repo


def test_install_starts_a_unit_of_this_program_and_remove_leaves_nothing(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, calls = tmp_path / "bin/systemctl", tmp_path / "calls"
    manager.parent.mkdir()
    manager.write_text(f'#!/bin/sh\necho "$@" >> {calls}\necho active\n')
    manager.chmod(0o755)
    monkeypatch.setenv("PATH", f"{manager.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    said = patchq("service", "install", cwd=repo).out
    (unit,) = (tmp_path / "config/systemd/user").iterdir()
    assert str(unit) in said
    assert "active; see `systemctl --user status" in said
    text = unit.read_text()
    assert f"WorkingDirectory={repo}\n" in text
    (check,) = re.findall(r"^ExecStartPre=(.*)$", text, re.M)
    bare = {"PATH": "/usr/bin:/bin"}
    checked = subprocess.run(check, shell=True, cwd=repo, env=bare, timeout=60)
    assert (Path(check.split()[0].strip('"')).is_absolute(), checked.returncode) == (True, 0)
    assert calls.read_text().splitlines() == [
        "--user daemon-reload",
        f"--user enable --now {unit.name}",
        f"--user is-active {unit.name}",
    ]
    if shutil.which("systemd-analyze"):
        verify = ["systemd-analyze", "verify", str(unit)]
        done = subprocess.run(verify, capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
    patchq("service", "remove", cwd=repo)
    assert not unit.exists()
    assert f"--user disable --now {unit.name}" in calls.read_text()
    manager.write_text('#!/bin/sh\ntest "$2" != is-active || { echo failed; exit 3; }\n')
    assert "is-active" in patchq("service", "install", cwd=repo, code=2).err
    assert not unit.exists()
    assert "`patchq service install` writes it" in patchq("service", "remove", cwd=repo, code=2).err


def test_the_unit_of_the_machine_hides_nothing_that_hooks_and_work_trees_need(repo: Path) -> None:
    text = unit_text(repo, system=True)
    for line in ("Type=notify", "RestartPreventExitStatus=2", "NoNewPrivileges=true"):
        assert line in text.splitlines()
    hiding = "PrivateTmp ProtectHome ProtectSystem=strict ReadOnlyPaths RootDirectory BindPaths"
    needed = "RestrictNamespaces PrivateUsers ProtectKernelTunables ProtectProc"
    for key in (*hiding.split(), *needed.split()):
        assert not re.search(rf"^{key}\b", text, re.M), key
    assert "@mount" not in re.findall(r"^SystemCallFilter=~(.*)$", text, re.M)[0]
