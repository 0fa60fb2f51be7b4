"""`patchq setup`: each client's file has a server that starts from an empty environment, and what
was there before comes back to the byte."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from patchq.cli import setup as module
from patchq.cli.setup import changes
from patchq.cli.setup.clients import CLAUDE_SKILL, CLIENTS, INSTRUCTIONS, NAME, SKILL
from patchq.gate.config import config_file
from patchq.gate.errors import UsageError
from tests.helpers.command import patchq
from tests.helpers.gitrepo import git, make_repo, write_files

BEGIN, END = "<!-- patchq: begin -->", "<!-- patchq: end -->"
PATCHQ = f"{sys.executable} -m patchq"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on a machine that has none of the clients."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return make_repo(tmp_path / "repo", {"a.txt": "one\n"})


def setup(repo: Path, *words: str, code: int = 0) -> dict[str, dict[str, str]]:
    """The clients of the answer, by their names."""
    told = patchq("--json", "setup", "--yes", *words, cwd=repo, code=code).json()
    return {one["client"]: one for one in told["clients"]}


def contents(repo: Path) -> dict[str, bytes]:
    """The work tree's files, but for the queue's."""
    return {
        str(path.relative_to(repo)): path.read_bytes()
        for path in repo.rglob("*")
        if path.is_file() and not {".git", ".patchq"} & {*path.relative_to(repo).parts}
    }


def programs(folder: Path, **scripts: str) -> Path:
    """A directory of programs that run these scripts."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "before",
    ["", "# Ours\n", "# Ours\n\n", "no end", "# Ours\r\n", "\ufeffa\n", "# Gr\xfc\xdfe\n"],
)
def test_a_section_takes_no_other_byte(before: str) -> None:
    data = before.encode("utf-8" if "\ufeff" in before else "latin-1")
    written = changes.write_section("A.md", data, "new\n")
    assert written.startswith(data)
    assert b"\n".join(written.splitlines()).endswith(f"{BEGIN}\nnew\n{END}".encode())
    assert (b"\r\n" in written) == (b"\r\n" in data)
    assert changes.write_section("A.md", written, "new\n") == written
    assert changes.remove_section("A.md", written) == data
    end = b"" if data.endswith(b"\n") else b"\n"
    assert changes.remove_section("A.md", written + b"more\n") == data + end + b"more\n"


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        (".mcp.json", '{\n // ours\n "a": 1\n}\n', ".mcp.json: not JSON: "),
        (".mcp.json", '{"mcpServers": []}', ".mcp.json:1:16: not JSON: expected an object"),
        (".codex/config.toml", "mcp_servers = {}\n", ".codex/config.toml: not TOML: "),
        ("AGENTS.md", f"a\n{BEGIN}\n", "AGENTS.md: expected UTF-8 text, with one line"),
        ("AGENTS.md", "a\n".encode("utf-16"), "AGENTS.md: expected UTF-8 text, with one line"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_written(
    repo: Path, path: str, text: str | bytes, place: str
) -> None:
    write_files(repo, {path: text})
    before = contents(repo)
    err = patchq("setup", "--yes", "claude", "codex", cwd=repo, code=2).err
    assert err.startswith(f"patchq: {place}")
    assert contents(repo) == before


FIVE = ("claude", "codex", "gemini", "qwen", "opencode")


def test_five_clients_are_set_up_proved_and_taken_out(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = dict.fromkeys(FIVE, "echo patchq: Connected")
    bin = programs(tmp_path / "bin", **answers | {"claude": "echo '  Status: Pending'"})
    monkeypatch.setenv("PATH", f"{bin}:/usr/bin:/bin")
    (repo / "AGENTS.md").write_text("# Ours")
    before, status = contents(repo), git("status", "--porcelain", "-uall", cwd=repo)
    told = setup(repo)
    found = {name: (one["state"], one["problem"]) for name, one in told.items()}
    assert found == dict.fromkeys(FIVE, ("verified", ""))
    assert told["claude"]["it says"] == "Status: Pending"
    assert "approve" in told["claude"]["to do"]
    assert told["gemini"]["to do"] == ""
    assert (repo / SKILL.path).read_bytes() == (repo / CLAUDE_SKILL.path).read_bytes()
    assert "@AGENTS.md" in (repo / "CLAUDE.md").read_text()
    server = json.loads((repo / ".mcp.json").read_text())["mcpServers"][NAME]
    assert os.path.isabs(server["command"])
    assert tomllib.loads((repo / ".codex/config.toml").read_text())["mcp_servers"][NAME] == server
    git("add", ".", cwd=repo)  # what names a path of this machine stays out
    assert str(Path(sys.executable).parent) not in git("diff", "--cached", cwd=repo)
    git("reset", "-q", cwd=repo)
    # The same again changes nothing, and what clients add to a file that was made goes with it.
    made = contents(repo)
    again = patchq("setup", "--yes", "--json", cwd=repo).json()["files"]
    assert {*again.values()} == {"unchanged"}
    assert contents(repo) == made
    assert patchq("setup", "--dry-run", cwd=repo).out == "nothing would change\n"
    opencode = repo / "opencode.json"
    opencode.write_text(opencode.read_text().replace("{\n", '{\n  "$schema": "x",\n', 1))
    setup(repo, "--remove")
    assert contents(repo) == before
    assert git("status", "--porcelain", "-uall", cwd=repo) == status
    assert not (repo / ".codex").exists()
    (repo / ".mcp.json").write_text("{}")  # it may be committed from now on
    assert "?? .mcp.json" in git("status", "--porcelain", cwd=repo)


def test_every_client_has_a_file_that_is_read_back(repo: Path, home: Path) -> None:
    before = contents(repo)
    for words in ([], ["--user"]):
        told = setup(repo, *CLIENTS, *words, code=int(not words))
        states = {name: one["state"] for name, one in told.items() if one["state"] != "verified"}
        more = dict.fromkeys(("roo", "kilo"), "no server") if words else {"windsurf": "failed"}
        assert states == {"cline": "no server", "aider": "no server", **more}
    assert "read: AGENTS.md" in (repo / ".aider.conf.yml").read_text()
    assert NAME in (home / ".codeium/windsurf/mcp_config.json").read_text()
    setup(repo, "--remove", "--user")
    setup(repo, "--remove")
    assert contents(repo) == before
    assert {path.name for path in home.iterdir()} == {".gitconfig"}


def test_a_configuration_of_another_place_is_not_taken_back(repo: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "other", {".patchq.yaml": config_file.sample()})
    setup(repo, "--config", "../other/.patchq.yaml", "--remove")
    assert (tmp_path / "other/.patchq.yaml").exists()


def test_an_older_entry_is_replaced_and_a_changed_one_left(repo: Path) -> None:
    file = repo / ".mcp.json"
    file.write_text(
        '{"mcpServers": {"patchq": {"command": "patchq", "args": ["mcp", "--agent", "x"]}}}'
    )
    assert setup(repo, "claude")["claude"]["state"] == "verified"
    server = json.loads(file.read_text())["mcpServers"][NAME]
    assert (os.path.isabs(server["command"]), server["args"]) == (True, ["mcp"])
    changed = file.read_text().replace('"args"', '"env": {"A": "b"}, "args"')
    toml = '[mcp_servers.patchq]\ncommand = "patchq"\nargs = ["mcp"]\n'
    write_files(repo, {".mcp.json": changed, ".codex/config.toml": toml})
    for words in (["claude", "codex"], ["--remove"]):
        told = patchq("setup", "--json", "--yes", *words, cwd=repo, code=None).json()["files"]
        for path in (".mcp.json", ".codex/config.toml"):
            assert told[path] == "left: a person changed its `patchq`"
        assert file.read_text() == changed


def test_a_tracked_file_gets_no_path_of_this_machine(
    repo: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".mcp.json").write_text("{}\n")
    git("add", ".mcp.json", cwd=repo)
    told = setup(repo, "claude")["claude"]
    assert (told["file"], told["state"]) == ("~/.claude.json", "verified")
    assert "git tracks .mcp.json" in told["note"]
    assert (repo / ".mcp.json").read_text() == "{}\n"
    assert NAME in json.loads((home / ".claude.json").read_text())["mcpServers"]
    setup(repo, "claude", "--remove")
    assert not (home / ".claude.json").exists()
    refuses = 'test ! -f .git || { echo "not in a linked one" >&2; exit 1; }'
    bin = programs(
        tmp_path / "bin",
        linked=f'{refuses}\nexec {PATCHQ} "$@"',
        uvx=f'test "$1" = --offline && exec {PATCHQ} --version\n'
        f'test "$1 $2 $3" = "--from patchq[all] patchq" && exec {PATCHQ} mcp',
    )
    git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"), cwd=repo)
    told = setup(repo, "claude", "--command", str(bin / "linked"), code=1)["claude"]
    assert told["problem"] == "not in a linked one"
    assert str(bin / "linked") in (repo / ".mcp.json").read_text()
    git("worktree", "remove", str(tmp_path / "side"), cwd=repo)
    monkeypatch.setenv("PATH", f"{bin}:/usr/bin:/bin")  # `uvx` has this version at hand
    (repo / ".mcp.json").write_text("{}\n")
    told = setup(repo, "claude")["claude"]
    assert (told["file"], told["state"]) == (".mcp.json", "verified")
    assert '"command": "uvx"' in (repo / ".mcp.json").read_text()


def test_a_tracked_entry_that_starts_anywhere_is_kept(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin = programs(tmp_path / "bin", tool=f'exec {sys.executable} -m "$@"')
    monkeypatch.setenv("PATH", f"{bin}:/usr/bin:/bin")
    assert setup(repo, "claude", "--command", "tool patchq")["claude"]["state"] == "verified"
    git("add", "--all", cwd=repo)
    before = contents(repo)
    told = setup(repo, "--check", "claude", "--command", "tool patchq")["claude"]
    assert (told["file"], told["state"]) == (".mcp.json", "verified")
    (bin / "tool").write_text("#!/bin/sh\ntouch run\n")  # of whoever wrote the repository
    for words in (["claude"], ["--check", "claude"]):
        told = setup(repo, *words, code=1)["claude"]
        assert (told["file"], told["state"]) == (".mcp.json", "failed")
        assert "so it is not run" in told["problem"]
    assert contents(repo) == before


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no >&2; exit 3", "no"),
        ("while read line; do echo $line; done", "it ends without an answer"),
        ('test -z "$OTHER" && echo empty >&2', "empty"),
        ("sleep 600 & sleep 600", "no answer within 1 s"),
    ],
)
def test_a_server_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    monkeypatch.setenv("OTHER", "1")
    if "sleep" in script:
        monkeypatch.setattr(module, "SECONDS", 1.0)
    server = programs(tmp_path / "bin", server=script) / "server"
    assert module.failure([str(server)], tmp_path) == why


def test_nobody_to_ask_and_a_dry_run(repo: Path) -> None:
    before = contents(repo)
    done = patchq("setup", "claude", cwd=repo, code=2)
    assert "no terminal to ask on: change AGENTS.md, " in done.err
    assert "say --yes" in done.err
    assert "+## Changes go through patchq" in patchq("setup", "--dry-run", cwd=repo).out
    assert "did you mean `claude`?" in patchq("setup", "cluade", cwd=repo, code=2).err
    bare = repo.parent / "bare.git"
    git("init", "-q", "--bare", str(bare), cwd=repo)
    assert "bare repository" in patchq("setup", "--yes", cwd=bare, code=2).err
    listed = patchq("setup", "--list", cwd=repo).out.splitlines()
    assert [line.split()[0] for line in listed] == [*CLIENTS]
    assert "no entry" in patchq("setup", "--check", "claude", cwd=repo, code=1).out
    assert contents(repo) == before
    assert not (repo / ".patchq").exists()


def test_links_are_followed_within_the_work_tree_alone(repo: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("# Theirs\n")
    for path, target in (
        ("AGENTS.md", outside), (".claude", tmp_path), ("AGENTS.md", repo / ".git/description"),
    ):  # fmt: skip
        (repo / path).symlink_to(target)
        err = patchq("setup", "claude", "--yes", cwd=repo, code=2).err
        assert "leads out of the work tree" in err
        (repo / path).unlink()
    assert outside.read_text() == "# Theirs\n"
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    assert "@AGENTS.md" not in patchq("setup", "claude", "--dry-run", cwd=repo).out
    (repo / "AGENTS.md").write_text("# Ours\n")
    (repo / "AGENTS.md").chmod(0o640)
    (repo / "GEMINI.md").write_text("@AGENTS.md\n")
    setup(repo, "claude", "gemini")
    assert (repo / "AGENTS.md").read_text().count(BEGIN) == 1
    assert (repo / "AGENTS.md").stat().st_mode & 0o777 == 0o640
    assert (repo / "CLAUDE.md").is_symlink()
    assert (repo / "GEMINI.md").read_text() == "@AGENTS.md\n"


def test_what_was_written_meanwhile_is_kept(repo: Path) -> None:
    one = changes.of_text(repo, INSTRUCTIONS, remove=False)
    (repo / "AGENTS.md").write_text("# Just written\n")
    with pytest.raises(UsageError, match="was changed meanwhile"):
        one.write(repo)
    assert (repo / "AGENTS.md").read_text() == "# Just written\n"
