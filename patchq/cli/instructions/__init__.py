"""`patchq instructions`: the Agent Skill, `skill.md`; `section.md` is for `AGENTS.md`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from patchq.cli import output

SECTION, _SKILL = (Path(__file__).with_name(n).read_text() for n in ("section.md", "skill.md"))
_HEAD, TEXT = _SKILL.split("---\n\n", 1)
SKILL_HEAD = f"{_HEAD}---\n\n"


def run(args: Namespace) -> int:
    return output.emit(args, {"instructions": TEXT}, TEXT.removesuffix("\n"))
