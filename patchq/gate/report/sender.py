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

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.front_matter import Split, open_response
from patchq.core.model.values import Envelope
from patchq.gate.report.message import trailers

_TRAILER = re.compile(r"(?m)^Assisted-by:.*\n?")


class Sender(Struct, frozen=True):
    """Agent and model that wrote a change, as far as they are known."""

    agent: str | None = None
    model: str | None = None

    def or_else(self, other: Sender) -> Sender:
        return Sender(self.agent or other.agent, self.model or other.model)

    def keys(self) -> dict[str, str]:
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

    `fallback` counts where neither the keys nor the front matter name a sender.  What cannot be
    opened stays as it is: the queue refuses it.
    """
    opened = open_response(data)
    if not isinstance(opened, Envelope):
        return data, []
    given = to_builtins(replace(opened.header, blank=False))
    there = {key: value for key, value in given.items() if value}
    spare = (fallback or Sender()).keys()
    wanted = {key: value for key, value in spare.items() if key not in there}
    asked = to_builtins(dict(keys)).items()
    wanted |= {key: value for key, value in asked if value and value != there.get(key)}
    if not wanted:
        return data, []
    lines = "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in {**there, **wanted}.items()
    )
    text = data.decode("utf-8-sig")
    found = front_matter.split(text)
    if not isinstance(found, Split):
        return f"---\n{lines}---\n{text}".encode(), []
    end = found.block_at + len(found.block)
    made = text[: found.block_at] + lines + text[end:]
    return made.encode(), [key for key in wanted if key in there]
