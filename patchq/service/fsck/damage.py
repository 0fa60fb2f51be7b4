"""Checking the queue against the repository, and rebuilding what one of them still tells of the
other.

Every kind of damage is found by looking, whatever may have caused it, and knows how it is mended,
if it can be.  A response is never deleted: one without a verdict goes back to the inbox.  Nothing
is made up: what neither report nor git knows stays damage, with what a person can do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it should be.  `kind` names it for programs, `where` is a path, a
    ref or an id; `mend` rebuilds it, `cure` is for people where there is no `mend`."""

    kind: str
    where: str
    message: str
    cure: str | None = None
    mend: Callable[[], object] | None = field(default=None, compare=False)
