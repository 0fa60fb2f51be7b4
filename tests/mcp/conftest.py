"""A queue that a real daemon serves, for all tests of a module: each takes files of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.gitrepo import identity, make_repo

CODE = """\
def one():
    return 1


def two():
    x = compute(1)
    return x


def three():
    x = compute(1)
    return x + 1
"""
FILES = {f"f{n}.txt": "one\ntwo\nthree\n" for n in range(20)}
FILES |= {f"code/{n}.py": CODE for n in range(50)}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The repository; its daemon watches until the module's tests are over."""
    home = tmp_path_factory.mktemp("served-home")
    bounded: dict[str, Any] = {"check": True, "capture_output": True, "timeout": 60}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in identity(home).items():
            patch.setenv(name, value)
        repo = make_repo(tmp_path_factory.mktemp("served") / "repo", FILES)
        command = [sys.executable, "-m", "patchq", "-C", str(repo)]
        subprocess.run([*command, "init"], **bounded)
        subprocess.run([*command, "watch", "--detach"], **bounded)
    yield repo
    subprocess.run([*command, "stop"], **bounded, env={**os.environ})
