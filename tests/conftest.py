"""Every test gets a home, a git configuration and an environment of its own.

libgit2 fixes the paths of its configuration files when it is first imported, so the process
gets an empty home before that import, and each test then points libgit2 to its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers import command

_SESSION_HOME = tempfile.mkdtemp(prefix="patchq-tests-home-")

for _name in [name for name in os.environ if name.startswith(("GIT_", "XDG_", "PATCHQ_"))]:
    del os.environ[_name]
# The tests start some thousand commands; each would compile the whole package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["HOME"] = _SESSION_HOME
os.environ["GIT_CONFIG_NOSYSTEM"] = "1"

import pygit2  # noqa: E402  (only after the home is set, see above)
from pygit2.enums import ConfigLevel  # noqa: E402

GITCONFIG = """\
[user]
    name = Ada Tester
    email = ada@example.org
[init]
    defaultBranch = main
    defaultObjectFormat = sha1
    defaultRefFormat = files
[core]
    autocrlf = false
[gc]
    auto = 0
[maintenance]
    auto = false
[advice]
    detachedHead = false
"""

# The same examples on every run, however long; `HYPOTHESIS_PROFILE=explore` looks for new ones.
settings.register_profile("repeat", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


def _point_libgit2_to(home: str) -> None:
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.PROGRAMDATA):
        pygit2.settings.search_path[level] = ""
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = home


_point_libgit2_to(_SESSION_HOME)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: many tests wait for a process, a clock or a disk."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(scope="session", autouse=True)
def _shared_process_ends_with_the_session() -> Iterator[None]:
    """What covers the code is written when a process ends, and read when the session does."""
    yield
    command.close()


def pytest_unconfigure() -> None:
    shutil.rmtree(_SESSION_HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The test's own home, with a git identity; processes that it starts see the same."""
    home = tmp_path_factory.mktemp("home")
    gitconfig = home / ".gitconfig"
    gitconfig.write_text(GITCONFIG)
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_", "PATCHQ_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(gitconfig))
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    _point_libgit2_to(str(home))
    yield home
    _point_libgit2_to(_SESSION_HOME)
    shutil.rmtree(home, ignore_errors=True)


# The extras are tested where they are installed; `.ci/run` installs them.
collect_ignore = [
    *([] if find_spec("tree_sitter") else ["text/test_grammars.py"]),
    *([] if find_spec("mcp") else ["cli/mcp"]),
]
