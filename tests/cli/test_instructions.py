"""What teaches agents: printed, and put where they look with consent, beside what others wrote."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from patchq.cli import arguments
from patchq.cli.instructions import installing, merging
from patchq.cli.instructions.agents import AGENTS, GENERIC
from patchq.cli.instructions.text import DESCRIPTION, NAME, SKILL_HEAD, TEXT
from patchq.cli.parsing import Parser
from patchq.cli.verbs import VERBS
from patchq.core.formats.registry import FORMATS
from patchq.core.model.names import batch_id
from patchq.gate.errors import Fault, QueueLocked, TimeIsUp, UsageError
from patchq.gate.report.schema import VERDICTS
from tests.helpers.command import patchq
from tests.helpers.gitrepo import git, make_repo
from tests.helpers.terminal import WAIT_SECONDS, on_a_terminal, plain

SKILL = ".claude/skills/patchq/SKILL.md"
VERBS_TAUGHT = {"accept", "submit", "check", "formats", "status", "wait", "watch", "show"}
ENTRY = {"command": "patchq", "args": ["mcp", "--agent", "claude-code"]}
END = f"{merging.END}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "one\n"})


def install(repo: Path, *words: str) -> dict[str, str]:
    told = patchq("--json", "init", "--yes", *(words or ("--agents",)), cwd=repo).json()
    return {one["path"]: one["state"] for one in told["agents"]}


# ---------------------------------------------------------------- what is taught


def test_every_command_is_one_that_is_taken() -> None:
    lines = re.findall(r"`(patchq [^`]*)`|^ *(patchq .*)$", TEXT, re.M)
    commands = [shlex.split(one or other)[1:] for one, other in lines]
    for verb, *words in commands:
        parser = Parser(verb)
        arguments.add(parser, getattr(import_module(f"patchq.cli.{verb}"), "ARGUMENTS", ()))
        if verb != "accept":  # which they are told not to call
            parser.parse_args(words)  # raises `UsageError`
    verbs = {verb for verb, *_ in commands}
    assert verbs == VERBS_TAUGHT
    assert verbs <= VERBS.keys()


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
    from patchq.mcp.definitions import DEFINITIONS

    tools = set(re.findall(r"`(\w+)`", TEXT.partition("MCP server")[2].partition("\n\n")[0]))
    assert tools == {"how_to_answer", "check", "submit", NAME}
    assert tools - {NAME} < {one.name for one in DEFINITIONS}


def test_the_skill_has_the_front_matter_that_its_format_asks_for() -> None:
    head = yaml.safe_load(SKILL_HEAD.split("---\n")[1])
    assert head == {"name": NAME, "description": DESCRIPTION}
    assert Path(SKILL).parent.name == NAME == batch_id(NAME)
    assert len(DESCRIPTION) <= 1024
    assert TEXT.isascii()
    # At the beginning of a line they would be the marks of a conflict, to git and to hooks.
    assert not re.search(r"^(<<<<<<<|=======|>>>>>>>)", TEXT, re.M)


def test_all_agents_are_told_the_same(repo: Path) -> None:
    for name in AGENTS:
        told = patchq("instructions", "--for", name, cwd=repo).out
        assert told == (SKILL_HEAD if name == "claude" else "") + TEXT
    assert patchq("instructions", cwd=repo).out == TEXT
    told = patchq("--json", "instructions", cwd=repo).json()
    assert (told["for"], told["files"]) == (GENERIC, ["AGENTS.md"])


# ---------------------------------------------------------------- putting it there


def test_what_is_written_and_again(repo: Path) -> None:
    git("checkout", "-q", "-b", "side", cwd=repo)
    assert install(repo) == dict.fromkeys((SKILL, "AGENTS.md", ".mcp.json"), "written")
    assert (repo / SKILL).read_text() == f"{SKILL_HEAD}{merging.BEGIN}\n{TEXT}{END}"
    assert json.loads((repo / ".mcp.json").read_text()) == {"mcpServers": {NAME: ENTRY}}
    before = {path: path.stat() for path in repo.rglob("*") if path.is_file()}
    assert set(install(repo).values()) == {"unchanged"}
    assert {path: path.stat() for path in before} == before
    assert git("status", "--porcelain", "-uall", cwd=repo).split("\n") == [
        f"?? {path}" for path in (SKILL, ".mcp.json", ".patchq.yaml", "AGENTS.md")
    ]
    # What else is in use here is seen by its files, or named.
    (repo / "CLAUDE.md").write_text("# Ours\n")
    (repo / ".gemini").mkdir()
    found = install(repo)
    assert [path for path, state in found.items() if state == "written"] == [
        "CLAUDE.md", "GEMINI.md", ".gemini/settings.json",
    ]  # fmt: skip
    assert install(repo, "--agents=codex") == {
        "AGENTS.md": "unchanged",
        ".codex/config.toml": "written",
    }
    codex = tomllib.loads((repo / ".codex/config.toml").read_text())
    assert codex["mcp_servers"][NAME]["command"] == "patchq"
    # A linked work tree gets its own.
    linked = repo.parent / "linked"
    git("worktree", "add", "-q", str(linked), "main", cwd=repo)
    assert install(linked, "--agents=generic") == {"AGENTS.md": "written"}
    assert (linked / "AGENTS.md").is_file()


NEW = f"{merging.BEGIN}\n{TEXT}{END}"
CRLF = NEW.replace("\n", "\r\n")
OLD = f"{merging.BEGIN}\nold\n{END}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", NEW),
        ("# Ours\n", f"# Ours\n\n{NEW}"),
        ("# Ours\n\n", f"# Ours\n\n{NEW}"),
        ("no end", f"no end\n\n{NEW}"),
        ("# Ours\r\n", f"# Ours\r\n\r\n{CRLF}"),
        ("\ufeffa\n", f"\ufeffa\n\n{NEW}"),
        (f"a\n{OLD}b\n", f"a\n{NEW}b\n"),
        (f"\ufeff{OLD}", f"\ufeff{NEW}"),
        (f"a\r\n{OLD}b\r\n".replace("\n", "\r\n").replace("\r\r", "\r"), f"a\r\n{CRLF}b\r\n"),
        (f"a\n{OLD[:-1]}", f"a\n{NEW[:-1]}"),
        (f"  {merging.BEGIN} \nold\n{END}", NEW),
    ],
)
def test_a_section_takes_no_other_byte(before: str, after: str) -> None:
    assert merging.section("A.md", before.encode(), TEXT).decode() == after
    assert merging.section("A.md", after.encode(), TEXT).decode() == after


LATIN = "# Gr\xfc\xdfe\n".encode("latin-1")


def test_text_of_another_encoding_is_kept() -> None:
    assert merging.section("A.md", LATIN, TEXT).startswith(LATIN)


HERE = '"patchq": {"command": "patchq", "args": ["mcp"]}'
LONG = '"patchq": {\n%s"command": "patchq",\n%s"args": [\n%s"mcp"\n%s]\n%s}'


def long(indent: str, unit: str) -> str:
    inner = indent + unit
    return LONG % (inner, inner, inner + unit, inner, indent)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "mcpServers": {\n    ' + long("    ", "  ") + "\n  }\n}\n"),
        ("{}", '{\n  "mcpServers": {\n    ' + long("    ", "  ") + "\n  }\n}"),
        ('{"a": 1.50, "mcpServers": {"x": {}}}\n',
         '{"a": 1.50, "mcpServers": {"x": {}, ' + HERE + "}}\n"),
        ('{ "a" : [1,2] }', '{ "a" : [1,2], "mcpServers": {' + HERE + "} }"),
        ('{\n\t"mcpServers": {\n\t\t"x": {"command":"\\u00e9\xe9"}\n\t},\n\t"b": 1e3\n}\n',
         '{\n\t"mcpServers": {\n\t\t"x": {"command":"\\u00e9\xe9"},\n\t\t' + long("\t\t", "\t")
         + '\n\t},\n\t"b": 1e3\n}\n'),
        ('\ufeff{\r\n "a": 1\r\n}\r\n',
         ('\ufeff{\n "a": 1,\n "mcpServers": {\n  ' + long("  ", " ") + "\n }\n}\n")
         .replace("\n", "\r\n")),
        ('{\n    "mcpServers": {\n    }\n}',
         '{\n    "mcpServers": {\n        ' + long("        ", "    ") + "\n    }\n}"),
        ('{"mcpServers": {"patchq": {"command": "mine"}}}',
         '{"mcpServers": {"patchq": {"command": "mine"}}}'),
        ('{"mcpServers": {"x": 1}, "mcpServers": {"}": "{"}}',
         '{"mcpServers": {"x": 1}, "mcpServers": {"}": "{", ' + HERE + "}}"),
    ],
)  # fmt: skip
def test_a_server_takes_no_other_byte(before: str, after: str) -> None:
    entry = {"command": "patchq", "args": ["mcp"]}
    assert merging.json_entry(".mcp.json", before.encode(), entry).decode() == after
    assert json.loads(after.removeprefix("\ufeff"))
    assert merging.json_entry(".mcp.json", after.encode(), entry).decode() == after


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        (".mcp.json", '{\n "a": 1,\n}\n', ".mcp.json:3:1: not JSON"),
        (".mcp.json", '{\n // ours\n "a": 1\n}\n', ".mcp.json:2:2: not JSON"),
        (".mcp.json", "[]", ".mcp.json:1: expected the file to be an object"),
        (".mcp.json", '{"a": 1,\n "mcpServers": []}', ".mcp.json:2: expected mcpServers"),
        (".mcp.json", "[" * 100_000, ".mcp.json is nested too deeply"),
        (".mcp.json", b'{"a":\n "\xff"}', ".mcp.json:2: not UTF-8 text"),
        (".codex/config.toml", "a = \n", ".codex/config.toml: not what Codex reads: "),
        (".codex/config.toml", "mcp_servers = {}\n", ".codex/config.toml: not what Codex reads: "),
        ("AGENTS.md", f"a\n{merging.BEGIN}\n", "AGENTS.md:2: expected one line"),
        ("AGENTS.md", f"{END}{merging.BEGIN}\n", "AGENTS.md:1: expected one line"),
        ("AGENTS.md", OLD + OLD, "AGENTS.md:1: expected one line"),
        ("AGENTS.md", "a\n".encode("utf-16"), "AGENTS.md is not UTF-8 text"),
    ],
)
def test_what_cannot_be_understood_is_refused(path: str, text: str | bytes, place: str) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    merge = merging.toml if path.endswith("toml") else merging.json_entry
    put = partial(merge, entry=ENTRY) if path[0] == "." else partial(merging.section, text=TEXT)
    with pytest.raises(UsageError) as refused:
        put(path, data)
    assert refused.value.message.startswith(place)
    assert refused.value.hint


def test_links_and_what_is_no_file(repo: Path, tmp_path: Path) -> None:
    """All is refused before anything is written; a link within the repository is followed."""
    outside = tmp_path / "outside.md"
    outside.write_text("# Theirs\n")
    for path, target, why in (
        ("AGENTS.md", outside, f"AGENTS.md leads out of the repository, to {outside}"),
        (".claude", tmp_path, f"{SKILL} leads out of the repository"),
        ("AGENTS.md", repo / ".git/description", "AGENTS.md leads into git's own directory"),
        (".mcp.json", repo / "a.txt", ".mcp.json:1:1: not JSON"),
    ):
        (repo / path).symlink_to(target)
        err = patchq("init", "--agents", "--yes", cwd=repo, code=2).err
        assert why in err
        (repo / path).unlink()
    os.mkfifo(repo / "AGENTS.md")
    assert "is no file" in patchq("init", "--agents", "--yes", cwd=repo, code=2).err
    (repo / "AGENTS.md").unlink()
    assert {path.name for path in repo.iterdir()} == {".git", "a.txt"}
    assert outside.read_text() == "# Theirs\n"

    (repo / "AGENTS.md").write_text("# Ours\n")
    (repo / "AGENTS.md").chmod(0o640)
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    (repo / "GEMINI.md").write_text("@AGENTS.md\n")
    found = install(repo, "--agents=claude,generic,gemini")
    assert [path for path in found if path.endswith(".md")] == [SKILL, "CLAUDE.md"]
    assert (repo / "AGENTS.md").read_text() == f"# Ours\n\n{NEW}"
    assert (repo / "AGENTS.md").stat().st_mode & 0o777 == 0o640
    assert (repo / "CLAUDE.md").is_symlink()
    assert (repo / "GEMINI.md").read_text() == "@AGENTS.md\n"


def test_what_somebody_wrote_meanwhile_is_kept(repo: Path) -> None:
    (one,) = installing.planned("generic", repo)
    (repo / "AGENTS.md").write_text("# Just written\n")
    with pytest.raises(UsageError, match="was changed meanwhile"):
        installing.write(one)
    assert (repo / "AGENTS.md").read_text() == "# Just written\n"
    installing.write(*installing.planned(" codex,", repo)[:1])
    assert (repo / "AGENTS.md").read_text() == f"# Just written\n\n{NEW}"


def test_nobody_to_be_asked(repo: Path) -> None:
    done = patchq("init", "--agents", cwd=repo, code=2)
    assert f"this would write {SKILL}, AGENTS.md, .mcp.json" in done.err
    assert "say --yes" in done.err
    assert "goes with --agents" in patchq("init", "--yes", cwd=repo, code=2).err
    bare = repo.parent / "bare.git"
    git("init", "-q", "--bare", str(bare), cwd=repo)
    assert "bare repository" in patchq("init", "--agents", "--yes", cwd=bare, code=2).err
    assert {path.name for path in repo.iterdir()} == {".git", "a.txt"}


def test_a_person_is_asked_about_each_file(repo: Path) -> None:
    with on_a_terminal(repo, "init", "--agents") as terminal:
        terminal.read_until(lambda text: text.count("? [y]es") == 1)
        terminal.type("n\n")
        terminal.read_until(lambda text: text.count("? [y]es") == 2)
        terminal.type("s\n")
        terminal.read_until(lambda text: text.count("? [y]es") == 3)
        terminal.type("y\n")
        terminal.read_until(lambda text: text.count("? [y]es") == 4)
        terminal.type("\x04")
        lines = plain(terminal.read_all())
        assert terminal.process.wait(WAIT_SECONDS) == 0
    assert "+## Changes go through patchq" in lines
    assert [line for line in lines if line.split(" ")[0] in ("written", "declined")] == [
        f"declined  {SKILL}", "written   AGENTS.md", "declined  .mcp.json",
    ]  # fmt: skip
    assert {path.name for path in repo.iterdir()} == {
        ".git", "a.txt", "AGENTS.md", ".patchq", ".patchq.yaml",
    }  # fmt: skip
