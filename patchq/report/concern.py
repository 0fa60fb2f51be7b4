"""Which batch a thread is at work on, so that the log can say it in every line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_BATCH: ContextVar[str] = ContextVar("batch", default="")


def batch() -> str:
    """The batch's id, or its response's name as long as it has none; empty for none."""
    return _BATCH.get()


def turn_to(id: str) -> None:
    """Say that the batch which the block is about goes by this id now."""
    _BATCH.set(id)


@contextmanager
def about(id: str) -> Iterator[None]:
    """What is logged inside the block concerns this batch."""
    before = _BATCH.set(id)
    try:
        yield
    finally:
        _BATCH.reset(before)
