"""Ending a bench by SIGTERM or Ctrl-C: it ends in good order, and what it started ends with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def cleaned_up() -> Iterator[None]:
    """The first of these signals ends the block by `SystemExit`, so that all that was opened is
    closed; another one does not cut that short.  Children that are left in the end are killed: a
    signal may come between the start of one and its being noted."""
    before = {number: signal.signal(number, _end) for number in _SIGNALS}
    try:
        yield
    finally:
        _hear(_nothing_more)
        for pid in _children():
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    _hear(_nothing_more)
    raise SystemExit(128 + number)


def _nothing_more(number: int, frame: FrameType | None) -> None:
    """A handler, as children would inherit that a signal is ignored."""


def _hear(handler: signal._HANDLER) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)


def _children() -> list[int]:
    return [
        int(word)
        for place in Path("/proc/self/task").glob("*/children")
        for word in place.read_text().split()
    ]
