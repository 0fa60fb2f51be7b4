"""What is shipped to run a cluster: the compose file's services, as their commands say, and the
service manager's units."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from psycopg import conninfo

from patchq.cli import parsing
from patchq.gate.api.location import DATABASE
from tests.helpers.pages import ROOT

COMPOSE = ROOT / "contrib/compose.yaml"
UNITS = sorted((ROOT / "contrib/systemd").rglob("*.service"))
GIVEN = {"PATCHQ_PASSWORD": "secret", "PATCHQ_REMOTE": "a remote"}


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
