"""The clients that `patchq setup` knows, each as one row of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

NAME = "patchq"
# The section is for `AGENTS.md`, the skill an Agent Skill.
SECTION, _SKILL = (Path(__file__).with_name(n).read_text() for n in ("section.md", "skill.md"))
_HEAD, TEXT = _SKILL.split("---\n\n", 1)
SKILL_HEAD = f"{_HEAD}---\n\n"


class InstructionFile(Struct, frozen=True):
    """A file that agents read, and the section that it has."""

    path: str
    text: str = SECTION
    head: str = ""
    unless: tuple[str, ...] = ()
    """Beginnings of lines that take the place of a section."""


class ServerFile(Struct, frozen=True):
    """A client's file of MCP servers, in the repository or in the home (`~/`)."""

    path: str
    servers: str = "mcpServers"
    fixed: Mapping[str, object] = {}
    """Members of an entry beside its command; `joined`: `command` holds the arguments, too."""
    joined: bool = False
    comments: bool = False

    @property
    def is_toml(self) -> bool:
        return self.path.endswith(".toml")

    def entry(self, words: Sequence[str]) -> dict[str, object]:
        own = {"command": [*words]} if self.joined else {"command": words[0], "args": [*words[1:]]}
        return {**self.fixed, **own}

    def words(self, entry: object) -> list[str]:
        held = entry if isinstance(entry, dict) else {}
        command, args = held.get("command"), held.get("args", [])
        words = command if self.joined else [command, *args] if isinstance(args, list) else None
        return words if isinstance(words, list) and all(isinstance(w, str) for w in words) else []

    def wrote(self, entry: object) -> bool:
        """Return true if setup wrote the entry, in any form, and it is unchanged."""
        words = self.words(entry)
        plain = words[:-2] if words[-2:-1] == ["--agent"] else words
        named = any(NAME in word for word in plain)
        return plain[-1:] == ["mcp"] and named and entry == self.entry(words)


class Client(Struct, frozen=True):
    title: str
    programs: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    """Files of a repository that tell that it is used there."""
    files: tuple[ServerFile, ...] = ()
    """The first that is there is used, else the first; `--remove` looks into all."""
    user: ServerFile | None = None
    texts: tuple[InstructionFile, ...] = ()
    verb: str = ""
    """Its own command that tells how the server is."""
    first: str = ""
    """A step that only a person can take."""


INSTRUCTIONS = InstructionFile("AGENTS.md")
SKILL, CLAUDE_SKILL = (
    InstructionFile(f".{name}/skills/{NAME}/SKILL.md", TEXT, head=SKILL_HEAD)
    for name in ("agents", "claude")
)
_claude, _gemini = (
    InstructionFile(path, "@AGENTS.md\n", unless=("@AGENTS.md", "@./AGENTS.md"))
    for path in ("CLAUDE.md", "GEMINI.md")
)
_aider = InstructionFile(".aider.conf.yml", "read: AGENTS.md\n", unless=("read:",))
_shared = ServerFile(".mcp.json")
_settings = partial(ServerFile, comments=True)
_codex = partial(ServerFile, servers="mcp_servers")
_zed = partial(_settings, servers="context_servers")
_code = partial(_settings, servers="servers", fixed={"type": "stdio"})
_opencode = partial(_settings, servers="mcp", fixed={"type": "local", "enabled": True}, joined=True)
CLIENTS = {
    "claude": Client(
        "Claude Code", ("claude",), ("CLAUDE.md", ".claude/settings.json"), (_shared,),
        ServerFile("~/.claude.json"), (_claude, CLAUDE_SKILL), "claude mcp get patchq",
        'run `claude` here once and approve it, or put `"enabledMcpjsonServers": ["patchq"]` into '
        ".claude/settings.local.json"),
    "copilot": Client(
        "Copilot CLI", ("copilot",), (".github/copilot-instructions.md", ".github/mcp.json"),
        (_shared, ServerFile(".github/mcp.json")),
        ServerFile("~/.copilot/mcp-config.json", fixed={"type": "local", "tools": ["*"]}), (),
        "copilot mcp get patchq", "run `copilot` here once and trust the folder"),
    "vscode": Client(
        "VS Code", ("code",), (".vscode",), (_shared, _code(".vscode/mcp.json")),
        _code("~/.config/Code/User/mcp.json"), first="start it there: `MCP: List Servers`"),
    "codex": Client("Codex", ("codex",), (".codex",), (_codex(".codex/config.toml"),),
        _codex("~/.codex/config.toml"), (), "codex mcp get patchq",
        "run `codex` here once and trust the project"),
    "cursor": Client(
        "Cursor", ("cursor", "cursor-agent"), (".cursor",), (ServerFile(".cursor/mcp.json"),),
        ServerFile("~/.cursor/mcp.json"), (), "cursor-agent mcp list-tools patchq",
        "enable the server in its settings"),
    "gemini": Client(
        "Gemini CLI", ("gemini",), (".gemini", "GEMINI.md"), (_settings(".gemini/settings.json"),),
        _settings("~/.gemini/settings.json"), (_gemini,), "gemini mcp list",
        "run `gemini` here once and trust the folder"),
    "qwen": Client(
        "Qwen Code", ("qwen",), (".qwen",),
        (_settings(".qwen/settings.json"), _settings(".qwen/settings.json.orig")),
        _settings("~/.qwen/settings.json"), (), "qwen mcp list"),
    "opencode": Client(
        "opencode", ("opencode",), ("opencode.json", "opencode.jsonc", ".opencode"),
        (_opencode("opencode.json"), _opencode("opencode.jsonc")),
        _opencode("~/.config/opencode/opencode.json"), (CLAUDE_SKILL,), "opencode mcp list"),
    "zed": Client(
        "Zed", ("zed", "zeditor"), (".zed",), (_zed(".zed/settings.json"),),
        _zed("~/.config/zed/settings.json"), first="open it in Zed and trust the worktree"),
    "roo": Client("Roo", (), (".roo",), (ServerFile(".roo/mcp.json"),)),
    "kilo": Client("Kilo", (), (".kilocode",), (ServerFile(".kilocode/mcp.json"),)),
    "cline": Client("Cline", ("cline",), (".clinerules",),
        first="run `cline mcp add patchq --yes -- COMMAND mcp`"),
    "windsurf": Client("Windsurf", ("windsurf",), (".windsurf",),
        user=ServerFile("~/.codeium/windsurf/mcp_config.json"), first="refresh its servers there"),
    "aider": Client("aider", ("aider",), (_aider.path,), texts=(_aider,)),
}  # fmt: skip
