"""How much work a call does, counted and not timed, so that it is the same on every machine."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable


def effort(work: Callable[[], object]) -> int:
    """The number of function calls that the work takes, built-in ones included."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return calls
