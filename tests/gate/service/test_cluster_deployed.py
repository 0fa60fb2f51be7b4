"""What is shipped to run a cluster: the compose file's services, as their commands say, and the
service manager's units."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from psycopg import conninfo

from patchq.cli import parsing
from patchq.gate.api.location import DATABASE
from tests.helpers.command import block
from tests.helpers.gitrepo import git, make_repo
from tests.helpers.pages import ROOT

COMPOSE = ROOT / "contrib/compose.yaml"
UNITS = sorted((ROOT / "contrib/systemd").rglob("*.service"))
GIVEN = {"PATCHQ_PASSWORD": "secret", "PATCHQ_REMOTE": "a remote"}
SECONDS = 60.0


def services(**given: str) -> dict[str, dict[str, Any]]:
    """The services as compose reads them: `${NAME:-default}`, `${NAME:?else}`, `$$`."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        name, kind, other = found.groups()
        assert name in given or kind == "-", f"{name} is needed"
        return given.get(name, other)

    text = re.sub(r"\$\$|\$\{(\w+):([?-])([^}]*)\}", value, COMPOSE.read_text())
    read: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return read


def words_of(line: str) -> list[str]:
    """What follows `patchq` in a shell's line, up to its end or to a redirection."""
    words = shlex.split(line, comments=True)
    words = words[words.index("patchq") + 1 :]
    ends = (place for place, word in enumerate(words) if word in ("<", "&&", "|"))
    return words[: next(ends, len(words))]


def accepted(words: list[str]) -> str:
    """The verb; raises `UsageError` unless the words are a command of patchq."""
    return str(parsing.parse(*parsing.sort(words)).verb)


def test_the_compose_files_names_are_those_of_the_product() -> None:
    read = services(**GIVEN)
    made = read["database"]["environment"]
    ours = [one for name, one in read.items() if name != "database"]
    for one in ours:
        assert one["environment"].keys() == {DATABASE, "PATCHQ_REMOTE"}
        reached = conninfo.conninfo_to_dict(one["environment"][DATABASE])
        assert reached == {
            "host": "database",
            "user": made["POSTGRES_USER"],
            "password": made["POSTGRES_PASSWORD"],
            "dbname": made["POSTGRES_USER"],
        }
    for one in read.values():
        assert read.keys() >= one.get("depends_on", {}).keys()
    [said] = re.findall(r"exec -T feeder (patchq .*)", COMPOSE.read_text())
    assert accepted(words_of(said)) == "submit"


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def start(service: dict[str, Any], clone: Path, database: str) -> subprocess.Popen[bytes]:
        """The service's command, with the clone where its volume would be."""
        words = [word.replace("/clone", str(clone)) for word in shlex.split(service["command"])]
        environ = {
            **os.environ,
            **service["environment"],
            DATABASE: database,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        with clone.with_suffix(".log").open("ab") as log:
            one = subprocess.Popen(words, cwd=clone.parent, env=environ, stdout=log, stderr=log)
        running.append(one)
        return one

    yield start
    for one in running:
        if one.poll() is None:
            one.kill()
        one.wait()


@pytest.mark.slow
def test_the_compose_files_commands_make_a_cluster(
    tmp_path: Path, bare: str, started: Callable[..., subprocess.Popen[bytes]]
) -> None:
    config = "version: 1\nmode: auto\ntarget: main\ncluster: {}\n"
    make_repo(tmp_path / "seed", {"a.txt": "one\n", ".patchq.yaml": config})
    git("clone", "-q", "--bare", "seed", "hub.git", cwd=tmp_path)
    read = services(PATCHQ_PASSWORD="secret", PATCHQ_REMOTE=str(tmp_path / "hub.git"))
    for _ in range(2):  # `up` starts it each time
        assert started(read["migrate"], tmp_path / "migrate", bare).wait(SECONDS) == 0
    names = [name for name in read if name not in ("database", "migrate")]
    running = [started(read[name], tmp_path / name, bare) for name in names]
    until = time.monotonic() + SECONDS
    inbox = tmp_path / "feeder/.patchq/inbox"
    while not inbox.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    (inbox / ".x").write_text(block("a.txt", "one\n", "1\n"))
    (inbox / ".x").rename(inbox / "x.md")
    while git("show", "main:a.txt", cwd=tmp_path / "hub.git") != "1":
        assert time.monotonic() < until, [log.read_text() for log in tmp_path.glob("*.log")]
        time.sleep(0.02)
    for one in running:
        one.send_signal(signal.SIGTERM)
    assert [one.wait(SECONDS) for one in running] == [0] * len(names)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_unit_calls_commands_that_there_are(unit: Path) -> None:
    text = unit.read_text()
    lines = [line.partition("=")[2] for line in text.splitlines() if line.startswith("ExecStart")]
    verbs = [accepted(words_of(line)) for line in lines]
    assert verbs[-1] == ("worker" if "worker" in unit.name else "watch")
    assert DATABASE in text or "worker" not in unit.name
    if tool := shutil.which("systemd-analyze"):
        done = subprocess.run([tool, "verify", unit], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
