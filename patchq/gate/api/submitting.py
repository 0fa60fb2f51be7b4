"""The names and the verdicts of responses that were handed in."""

from __future__ import annotations

import time

from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.report.schema import Report
from patchq.gate.report.secrecy import batch_id

_LONGEST_STEM = 40


def report_on(queue: QueueEngine, digest: str, name: str) -> Report | None:
    """Return the report on the response with these bytes that came under that name, if any.

    It has a verdict, or why the response is held.
    """
    for id in reversed(queue.by_source(digest)):
        report = queue.load(id)
        if report and report.source.name == name:
            return report
    return None


def marked_name(words: str, suffix: str = ".md") -> str:
    """Return a file's name of these words, which differs where two send the same bytes at once."""
    stem = batch_id(words)[:_LONGEST_STEM].strip(".-_").lower()
    return f"{stem}-{time.time_ns() & 0xFFFFFF:06x}{suffix}"
