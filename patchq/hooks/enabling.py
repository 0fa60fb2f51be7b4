"""Switching the default gate on in `.patchq.yaml`, by as few lines as possible.

The file is its owner's: comments, order and spelling stay.  Lines are put in only where no hook is
configured yet, and only if the file then says what it said before, and the gate.
"""

from __future__ import annotations

import re

from patchq.config import config_file
from patchq.config.config_file import ConfigError
from patchq.config.schema import Config
from patchq.hooks import shipped

GATE = """\
  - id: gate
    stage: pre-apply
    run: patchq:pre-apply
"""
"""An entry of `hooks`."""

_NO_HOOKS = re.compile(r"(?m)^hooks:[ \t]*(?:\[[ \t]*\]|~|null)?(?P<comment>[ \t]+#.*)?$")


def is_enabled(config: Config, name: str = shipped.GATE) -> bool:
    """Whether the configuration runs the shipped hook of that name."""
    return any(hook.run == shipped.PREFIX + name for hook in config.hooks)


def enable(data: bytes) -> bytes | None:
    """The configuration file with the gate; None if its own hooks, or its form, leave no room for
    lines that are surely right.  It raises `ConfigError` for a file that cannot be read."""
    before = config_file.parse(data)
    if before.hooks:
        return None
    text = data.decode()
    end = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    found = _NO_HOOKS.search(text)
    if found:
        rest = text[found.end() :].removeprefix("\n")
        text = f"{text[: found.start()]}hooks:{found['comment'] or ''}\n{GATE}{rest}"
    else:
        gap = "" if not text or text.endswith("\n") else "\n"
        text = f"{text}{gap}\nhooks:\n{GATE}"
    updated = text.replace("\n", end).encode()
    try:
        after = config_file.parse(updated)
    except ConfigError:
        return None
    unchanged = after.model_copy(update={"hooks": ()}) == before
    return updated if unchanged and is_enabled(after) else None
