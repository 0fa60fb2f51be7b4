"""A queue that a real daemon serves, for all tests of a module: each takes files of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.command import patchq
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
    with pytest.MonkeyPatch.context() as patch:
        for name, value in identity(tmp_path_factory.mktemp("served-home")).items():
            patch.setenv(name, value)
        repo = make_repo(tmp_path_factory.mktemp("served") / "repo", FILES)
        patchq("init", cwd=repo)
        patchq("watch", "--detach", cwd=repo)
    yield repo
    patchq("stop", cwd=repo)
