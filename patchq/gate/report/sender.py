"""Sender of a change, and the front matter that names it: the same for every door.

The first source that names the agent, or the model, counts: a flag, the front matter, the
environment, the trailer of the commits handed in, the client of a tool.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope, Header, Problem
from patchq.gate.errors import UsageError
from patchq.gate.report.message import trailers

# A key of front matter with its value, which may be a block of lines.
_ENTRY = r"(?m)^([\"']?){}\1[ \t]*:.*\n(?:(?:[ \t]|- ).*\n|\n(?=[ \t]))*"
_TRAILER = re.compile(r"(?m)^Assisted-by:.*\n?")


class Sender(Struct, frozen=True):
    """Agent and model that wrote a change, as far as they are known."""

    agent: str | None = None
    model: str | None = None

    def or_else(self, other: Sender) -> Sender:
        """Return this sender, completed by another one."""
        return Sender(self.agent or other.agent, self.model or other.model)

    def keys(self) -> dict[str, str]:
        """Return the front matter's keys of the sender."""
        named = {"agent": self.agent, "model": self.model}
        return {key: value for key, value in named.items() if value}


def from_environment() -> Sender:
    """Return the sender that PATCHQ_AGENT and PATCHQ_MODEL name."""
    return Sender(os.environ.get("PATCHQ_AGENT"), os.environ.get("PATCHQ_MODEL"))


def from_trailers(messages: Iterable[str]) -> Sender:
    """Return the sender that the last `Assisted-by: AGENT:MODEL` of the messages names."""
    sender = Sender()
    for message in messages:
        for value in trailers(message).get("Assisted-by", []):
            agent, _, model = value.partition(":")
            sender = Sender(agent.strip() or None, model.strip() or None)
    return sender


def without_trailer(message: str) -> str:
    """Return the message without its `Assisted-by` lines, which a commit gets anew."""
    return _TRAILER.sub("", message).rstrip()


def with_header(
    data: bytes, keys: Mapping[str, Any], fallback: Sender | None = None
) -> tuple[bytes, list[str]]:
    """Return the response with these keys in its front matter, and those that it had otherwise.

    `fallback` counts where neither the keys nor the front matter name a sender.
    """
    opened = open_response(data)
    header = opened.header if isinstance(opened, Envelope) else Header()
    there = {key: getattr(header, key) for key in Header.__struct_fields__}
    spare = (fallback or Sender()).keys()
    wanted = {key: value for key, value in spare.items() if not there[key]}
    wanted |= {key: value for key, value in keys.items() if _differs(there[key], value)}
    replaced = [key for key in wanted if there[key]]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data, []  # the queue refuses it
    found = front_matter.split(text)
    if not wanted or isinstance(found, Problem):
        return data, []
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in wanted.items())
    if found is None:
        return f"---\n{lines}---\n{text}".encode(), []
    block = found.block
    for key in replaced:
        block = re.sub(_ENTRY.format(key), "", block)
    end = found.block_at + len(found.block)
    made = (text[: found.block_at] + lines + block + text[end:]).encode()
    again = open_response(made)
    if replaced and not isinstance(again, Envelope):
        raise UsageError(
            f"cannot replace {', '.join(replaced)} in the front matter", "remove it there"
        )
    return made, replaced


def _differs(there: object, wanted: object) -> bool:
    """Return true if a key is wanted that the front matter does not have so."""
    value = tuple(wanted) if isinstance(wanted, list) else wanted
    return value not in (None, (), there)
