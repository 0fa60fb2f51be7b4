"""The numbers as a text file for Prometheus' node exporter (`--collector.textfile.directory`).

The file is replaced as a whole, so nobody reads half of it.  No label comes from a response: agents
name themselves, and each new name would be a new series.  A file that cannot be written is warned
of once and stops nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq import __version__
from patchq.git import files
from patchq.model.report import VERDICTS
from patchq.service import stats
from patchq.service.stats import Key

_LOG = logging.getLogger("patchq")


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is written: the sums, and how the queue stands now.  Times are seconds since the
    epoch."""

    counts: Mapping[Key, float]
    inbox: int
    held: int
    waiting: int
    started: float
    last_landing: float | None


def text(numbers: Numbers) -> str:
    """The file's content."""
    return "".join(f"{line}\n" for line in _lines(numbers))


def _lines(numbers: Numbers) -> Iterator[str]:
    for name, kind, what, samples in _families(numbers):
        yield f"# HELP patchq_{name} {what}"
        yield f"# TYPE patchq_{name} {kind}"
        for label, value in samples.items():
            yield f"patchq_{name}{label} {value}"


def _families(numbers: Numbers) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """Name, type and meaning of each number, and what follows its name -> its value."""
    sums = stats.sums(numbers.counts).get("", {})
    verdicts, reasons = sums.get("verdict", {}), sums.get("reason", {})
    states = {f'{{state="{state}"}}': f"{verdicts.get(state, 0):.0f}" for state in VERDICTS}
    codes = {f'{{code="{_escaped(c)}"}}': f"{reasons[c]:.0f}" for c in sorted(reasons)}
    yield "info", "gauge", "The version of patchq.", {f'{{version="{__version__}"}}': "1"}
    yield "verdicts_total", "counter", "Responses that got their verdict.", states
    yield "refusals_total", "counter", "Responses refused for a reason.", codes
    for name, what, each in (
        ("decide", "Seconds spent on deciding.", "verdict"),
        ("hook", "Seconds in hooks.", "hook"),
    ):
        seconds, times = sums.get("seconds", {}).get(name, 0), sum(sums.get(each, {}).values())
        samples = {"_sum": f"{seconds:.3f}", "_count": f"{times:.0f}"}
        yield f"{name}_seconds", "summary", what, samples
    gauges: tuple[tuple[str, float | None, str], ...] = (
        ("inbox", numbers.inbox, "Responses in the inbox."),
        ("held", numbers.held, "Batches that wait for another batch, or for a work tree."),
        ("waiting", numbers.waiting, "Proposals that wait for review."),
        ("start_time_seconds", numbers.started, "When the daemon started."),
        ("last_landing_time_seconds", numbers.last_landing, "When a batch last landed."),
    )
    for name, value, what in gauges:
        if value is not None:
            yield name, "gauge", what, {"": f"{value:.3f}" if "time" in name else f"{value:.0f}"}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class MetricsFile:
    """The file at `path`, written when there is something new to write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written = ""
        self._warned = False

    def write(self, numbers: Numbers) -> None:
        """Replace the file.  Its directory must be there."""
        content = text(numbers)
        if content == self._written and self.path.exists():
            return
        # The node exporter reads what ends in `.prom`, so the scratch file must not.
        scratch = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            files.replace(self.path, content.encode(), via=scratch, mode=0o644)
        except OSError as error:
            with contextlib.suppress(OSError):
                scratch.unlink()
            if not self._warned:
                _LOG.warning("%s: the statistics cannot be written: %s", self.path, error.strerror)
            self._warned = True
            return
        self._written, self._warned = content, False
