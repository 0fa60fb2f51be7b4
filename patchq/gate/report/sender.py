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

from msgspec import to_builtins
from msgspec.structs import replace

from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.front_matter import Split, open_response
from patchq.core.model.values import Envelope
from patchq.gate.report.message import trailers

_TRAILER = re.compile(r"(?m)^Assisted-by:.*\n?")


def from_environment() -> dict[str, str]:
    """Return the keys of the sender that PATCHQ_AGENT and PATCHQ_MODEL name."""
    return _named(os.environ.get("PATCHQ_AGENT"), os.environ.get("PATCHQ_MODEL"))


def from_trailers(messages: Iterable[str]) -> dict[str, str]:
    """Return the keys of the sender that the last `Assisted-by: AGENT:MODEL` names."""
    values = [value for text in messages for value in trailers(text).get("Assisted-by", [])]
    agent, _, model = values[-1].partition(":") if values else ("", "", "")
    return _named(agent.strip(), model.strip())


def _named(agent: str | None, model: str | None) -> dict[str, str]:
    return {key: value for key, value in (("agent", agent), ("model", model)) if value}


def without_trailer(message: str) -> str:
    """Return the message without its `Assisted-by` lines, which a commit gets anew."""
    return _TRAILER.sub("", message).rstrip()


def with_header(
    data: bytes, keys: Mapping[str, Any], fallback: Mapping[str, str | None] = {}
) -> tuple[bytes, list[str]]:
    """Return the response with these keys in its front matter, and those replaced.

    `fallback` counts where neither the keys nor the front matter name a sender.  What cannot be
    opened stays as it is: the queue refuses it.
    """
    opened = open_response(data)
    if not isinstance(opened, Envelope):
        return data, []
    given = to_builtins(replace(opened.header, blank=False))
    there = {key: value for key, value in given.items() if value}
    wanted = {key: value for key, value in fallback.items() if value and key not in there}
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
