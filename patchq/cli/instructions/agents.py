"""Which files an agent reads by itself, as its documentation says, and what patchq puts there."""

from __future__ import annotations

from msgspec import Struct

from patchq.cli.instructions.text import NAME, SKILL_HEAD, TEXT

GENERIC = "generic"


class TextFile(Struct, frozen=True):
    """A text file with a part between two marks; `head` begins a new file."""

    path: str
    head: str = ""


class ServerFile(Struct, frozen=True):
    """A settings file that names the MCP server, as JSON or as TOML; `agent` is who submits."""

    path: str
    agent: str

    @property
    def entry(self) -> dict[str, object]:
        return {"command": "patchq", "args": ["mcp", "--agent", self.agent]}


class Agent(Struct, frozen=True):
    files: tuple[TextFile | ServerFile, ...]
    """Where it looks."""
    traces: tuple[str, ...] = ()
    """Files of a repository that tell that it is used there."""
    head: str = ""

    @property
    def instructions(self) -> str:
        return self.head + TEXT


_SKILL = TextFile(f".claude/skills/{NAME}/SKILL.md", SKILL_HEAD)
_EVERYBODY = TextFile("AGENTS.md")
_CLAUDE = ServerFile(".mcp.json", "claude-code")
AGENTS = {
    "claude": Agent((_SKILL, TextFile("CLAUDE.md"), _CLAUDE), ("CLAUDE.md",), SKILL_HEAD),
    "codex": Agent((_EVERYBODY, ServerFile(".codex/config.toml", "codex")), (".codex",)),
    "gemini": Agent(
        (TextFile("GEMINI.md"), ServerFile(".gemini/settings.json", "gemini-cli")),
        (".gemini", "GEMINI.md"),
    ),
    # It reads what `read:` in .aider.conf.yml names, and edits and commits by itself.
    "aider": Agent((_EVERYBODY,)),
    GENERIC: Agent((_EVERYBODY,)),
}
ALWAYS = (_SKILL, _EVERYBODY, _CLAUDE)
"""What is written where no agent is named; and the files of those that left traces."""
