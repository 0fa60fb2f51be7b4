"""What agents are taught is true of the code, and short."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from patchq.cli import arguments
from patchq.cli.command import VERBS, Parser
from patchq.cli.setup.changes import write_section
from patchq.cli.setup.clients import NAME, SECTION, SKILL, SKILL_HEAD, TEXT
from patchq.core.formats.registry import FORMATS
from patchq.core.model.names import batch_id
from patchq.gate.errors import Fault, QueueLocked, TimeIsUp, UsageError
from patchq.gate.report.schema import VERDICTS
from tests.helpers.command import patchq


def test_every_command_is_one_that_is_taken() -> None:
    lines = re.findall(r"`(patchq [^`]*)`|^ *(patchq .*)$", SECTION + TEXT, re.M)
    commands = [shlex.split(one or other)[1:] for one, other in lines]
    for verb, *words in commands:
        parser = Parser(verb)
        module = import_module(f"patchq.cli.{VERBS[verb][0]}")
        arguments.add(parser, module.ARGUMENTS.get(verb, ()))
        parser.parse_args(words)  # raises `UsageError`
    assert {verb for verb, *_ in commands} > {"submit", "check", "wait", "show"}


def test_states_exit_codes_tools_and_forms_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|([^|]*)\|", TEXT, re.M)
    states = [state for _, cell in rows for state in re.findall("`(.*?)`", cell)]
    codes = {int(code) for cell, _ in rows for code in cell.split(",")}
    assert sorted(states) == sorted(VERDICTS)
    faults = {kind.exit_status for kind in (Fault, UsageError, QueueLocked, TimeIsUp)}
    assert codes == {0, 1} | faults
    instructions = FORMATS["search_replace"].instructions
    assert all(f"    {line}\n" in TEXT for line in instructions.splitlines() if line)
    pytest.importorskip("mcp")
    from patchq.mcp.tools import Tools

    for text in (SECTION, TEXT):
        part = re.split(r"\n\n|\n- ", text.partition("MCP server")[2])[0]
        tools = set(re.findall(r"`(\w+)`", part)) - {NAME, "retries"}
        assert tools == {"how_to_answer", "check", "submit"}
        assert all(hasattr(Tools, name) for name in tools)


def test_it_is_short_and_has_the_front_matter_of_its_format(tmp_path: Path) -> None:
    head = yaml.safe_load(SKILL_HEAD.split("---\n")[1])
    assert head.keys() == {"name", "description"}
    assert Path(SKILL.path).parent.name == head["name"] == NAME == batch_id(NAME)
    assert len(head["description"]) <= 1024
    assert (SECTION + TEXT).isascii()
    assert len(write_section("a.md", None, SECTION)) <= 1024
    assert len(write_section("a.md", None, TEXT, head=SKILL_HEAD)) <= 5000
    assert patchq("instructions", cwd=tmp_path).out == TEXT
