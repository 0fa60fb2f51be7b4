"""The lane of a response: the branch that it is for, as its front matter says, and nothing else.

Whoever enters a response into a queue with lanes, and whoever decides on it, has to come to the
same branch.  What cannot be read, or names a branch that no batch may be for, goes to the default
one, where it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope, Header
from patchq.gate.pipeline.stages import not_a_target


def lane_of(data: bytes, default: str, targets: Sequence[str]) -> str:
    """The branch; `targets` are patterns of those that a response may name."""
    opened = open_response(data)
    return lane_named(opened.header if isinstance(opened, Envelope) else None, default, targets)


def lane_named(header: Header | None, default: str, targets: Sequence[str]) -> str:
    """The same by a header; None where it cannot be read."""
    named = header.target if header else None
    if named is None or not_a_target(named, [default, *targets]):
        return default
    return named
