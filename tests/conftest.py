"""Every test gets a home, a git configuration and an environment of its own.

libgit2 fixes the paths of its configuration files when it is first imported, so the process
gets an empty home before that import, and each test then points libgit2 to its own.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.helpers import command

if TYPE_CHECKING:
    from tests.helpers import postgres

_MEMORY, _ENOUGH = "/dev/shm", 2 << 30


def _is_fit(place: str) -> bool:
    """Whether the tests may write there: they start scripts, and a few write much."""
    if not os.access(place, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(place)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= _ENOUGH


# Every landing is flushed, and a disk takes a quarter of the whole run for that.  Who names a
# directory gets that one; `.ci/run` names a disk in one of its two runs.
if "TMPDIR" not in os.environ and _is_fit(_MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY
_SESSION_HOME = tempfile.mkdtemp(prefix="patchq-tests-home-")
_numbers = count()

_GIVEN_DATABASE = os.environ.get("PATCHQ_TEST_DATABASE")
_GIVEN_FORGE = {name: one for name, one in os.environ.items() if "_FORGE" in name}
for _name in [name for name in os.environ if name.startswith(("GIT_", "XDG_", "PATCHQ_"))]:
    del os.environ[_name]
# The tests start some thousand commands; each would compile the whole package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
if "PYTEST_XDIST_WORKER" in os.environ:  # which has read it; tests that run pytest want none of it
    os.environ.pop("PYTEST_ADDOPTS", None)
os.environ["HOME"] = _SESSION_HOME
os.environ["GIT_CONFIG_NOSYSTEM"] = "1"

import pygit2  # noqa: E402  (only after the home is set, see above)
from pygit2.enums import ConfigLevel  # noqa: E402

from patchq.gate.hooks.sandbox import can_sandbox  # noqa: E402  (it imports pygit2)
from tests.helpers.gitrepo import GITCONFIG  # noqa: E402  (so does this)

# The same examples on every run, however long; `HYPOTHESIS_PROFILE=explore` looks for new ones.
settings.register_profile("repeat", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


for _level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.PROGRAMDATA):
    pygit2.settings.search_path[_level] = ""
pygit2.settings.search_path[ConfigLevel.GLOBAL] = _SESSION_HOME


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: many tests wait for a process, a clock or a disk."""
    return len(os.sched_getaffinity(0)) + 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs the hooks' sandbox where there is none; `.ci/run` has one."""
    out = [item for item in items if item.get_closest_marker("sandbox")]
    if out and not can_sandbox(Path(_SESSION_HOME)):
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=out)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes a million values that all stay: looking for garbage among them again and
    again takes half of its time, and a share of every later search."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """End the process over a test that the time limit, which is a signal, cannot interrupt."""
    faulthandler.dump_traceback_later(660, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_sessionfinish() -> None:
    """Bound what comes behind the last test: fixtures, coverage, threads that do not end."""
    faulthandler.dump_traceback_later(900, exit=True)


@pytest.fixture(scope="session", autouse=True)
def _shared_processes_end_with_the_session() -> Iterator[None]:
    """What covers the code is written when a process ends, and read when the session does."""
    yield
    command.close()


def pytest_unconfigure() -> None:
    shutil.rmtree(_SESSION_HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The test's own home, with a git identity; processes that it starts see the same."""
    home = Path(_SESSION_HOME, str(next(_numbers)))
    home.mkdir()
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
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = str(home)
    yield home
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = _SESSION_HOME
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Shared]:
    """The session's one server, which all of its processes share."""
    from tests.helpers import postgres

    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    shared = postgres.Shared(folder, _GIVEN_DATABASE)
    yield shared
    shared.close()


@pytest.fixture
def named_forge() -> dict[str, str]:
    """The variables that name a real forge."""
    return _GIVEN_FORGE


@pytest.fixture
def bare(postgres_server: postgres.Shared) -> Iterator[str]:
    """The connection string of a test's own schema in a real server, without tables."""
    with postgres_server.schema() as conninfo:
        yield conninfo


@pytest.fixture
def database(bare: str) -> str:
    """The same with the queue's tables."""
    import psycopg

    from patchq.gate.queue.postgres.database import migrate

    with psycopg.connect(bare) as connection:
        migrate(connection)
    return bare


# The extras are tested where they are installed; `.ci/run` installs them.
collect_ignore = [
    *([] if find_spec("tree_sitter") else ["core/text/test_grammars.py"]),
    *([] if find_spec("mcp") else ["mcp"]),
    *([] if find_spec("mypy") else ["whole/test_consumer.py"]),
]
collect_ignore_glob = (
    []
    if find_spec("psycopg")
    else [
        *("gate/queue/test_postgres.py", "gate/land/test_late_push.py"),
        *("bench/test_cluster.py", "cli/test_cluster.py", "gate/service/test_cluster*.py"),
    ]
)
