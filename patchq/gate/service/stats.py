"""Counts of batches, tables of them, and their file for Prometheus' node exporter.

The exporter reads it by `--collector.textfile.directory`.

A count is kept by what is counted (`_counted`), for each agent, model and format, so that any sum
over them can be had; the store keeps them, and changes them with each verdict and later state.

Prometheus' file is replaced as a whole, so no reader gets half of it.  No label comes from a
response: agents name themselves, and each new name would be a new series.  A file that cannot be
written is warned of and stops nothing.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from patchq.core.model.values import State
from patchq.gate.git import files
from patchq.gate.queue.events import Event
from patchq.gate.report.schema import VERDICTS, WAITING, Report

_LOG = logging.getLogger("patchq")

_NOTHING = 1e-9
# What is counted, the agent, the model, the format (or the hook's id), and the value.
Key = tuple[str, str, str, str, str]
Counts = defaultdict[Key, float]
Sums = Mapping[str, Mapping[str, float]]  # what is counted -> the value -> its sum
PLACES = {"agent": 1, "model": 2, "format": 3}  # where a key has what sums can be had for

# The kinds of sums, and their keys in a row.
KINDS = {
    "verdict": "verdicts",
    "decision": "decisions",
    "match": "matches",
    "edit": "edits",
    "reason": "refusals",
    "flaky": "flaky",
}
DAY = "day"
BY = (*PLACES, DAY)
# Counted for each format; the others are counted for whole responses.
_OF_EDITS = ("match", "edit")
_MOST_DAYS = 60


def verdict(report: Report) -> State:
    """Return the state with which the report first appeared."""
    state = report.state
    if state in VERDICTS:
        return state
    return "applied" if state == "reverted" and report.mode == "auto" else "proposed"


def _counted(report: Report) -> Iterator[tuple[str, str, str, float]]:
    yield "verdict", "", verdict(report), 1
    if verdict(report) == "proposed" and report.state not in WAITING:
        yield "decision", "", "accepted" if report.state == "reverted" else report.state, 1
    for code in {p.code for p in report.problems if p.severity == "error"}:
        yield "reason", "", code, 1
    for edit in report.edits:
        yield "edit", edit.format or "", edit.state, 1
        if edit.match:
            yield "match", edit.format or "", edit.match, 1
    for run in report.hooks:
        if run.flaky:
            yield "flaky", "", run.id, 1
    yield "seconds", "", "decide", sum((report.timings or {}).values()) / 1000


def counted(report: Report) -> Counts:
    counts: Counts = defaultdict(int)
    for kind, form, value, number in _counted(report):
        counts[kind, report.agent or "", report.model or "", form, value] += number
    return counts


def sums(counts: Mapping[Key, float], by: str | None = None) -> dict[str, Sums]:
    """Return the sums for each agent, model or format (`PLACES`), by its name.

    Without `by`, those over everything, under an empty name.
    """
    found: dict[str, dict[str, Counter[str]]] = {}
    for key, number in counts.items():
        if abs(number) < _NOTHING:  # it was counted, and taken away
            continue
        kinds = found.setdefault(key[PLACES[by]] if by else "", defaultdict(Counter))
        kinds[key[0]][key[4]] += number  # type: ignore[assignment]
    return dict(found)


# ---------------------------------------------------------------- tables


def table(counts: Mapping[Key, float], by: str | None) -> list[dict[str, Any]]:
    """Return one row per agent, model or format, the busiest first.

    If `by` is None, there is one row for all.
    """
    counted = [kind for kind in KINDS if by != "format" or kind in _OF_EDITS]
    rows = []
    for name, kinds in sums(counts, by).items():
        if any(kind in kinds for kind in counted):
            own = {kind: kinds.get(kind, {}) if kind in counted else {} for kind in KINDS}
            rows.append(
                {
                    "name": name or None,
                    "responses": sum(own["verdict"].values()),
                    **{KINDS[kind]: dict(sorted(own[kind].items())) for kind in KINDS},
                }
            )
    return sorted(rows, key=lambda row: (-row["responses"], -edits(row), row["name"] or ""))


def edits(row: Mapping[str, Any]) -> int:
    """Return the number of edits that a row counts."""
    return int(sum(row["edits"].values()))


def days(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the number of events of each kind per day (UTC).

    Only the last days that had any are listed.
    """
    found: dict[str, Counter[str]] = {}
    for event in events:
        found.setdefault(event["at"]["iso"][:10], Counter())[event["kind"]] += 1
    last = sorted(found.items())[-_MOST_DAYS:]
    return [{"day": day, "events": dict(sorted(kinds.items()))} for day, kinds in last]


# ---------------------------------------------------------------- for Prometheus


# The queue as it is now; times are seconds since the epoch.
_GAUGES = {
    "inbox": "Responses in the inbox.",
    "held": "Changes that wait for another change, or for a work tree.",
    "waiting": "Proposals that wait for review.",
    "start_time_seconds": "When the daemon started.",
}


def _families(
    counts: Mapping[Key, float], gauges: Mapping[str, float | None]
) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    total = sums(counts).get("", {})
    verdicts, reasons = total.get("verdict", {}), total.get("reason", {})
    states = {f'{{state="{state}"}}': f"{verdicts.get(state, 0):.0f}" for state in VERDICTS}
    codes = {f'{{code="{c}"}}': f"{reasons[c]:.0f}" for c in sorted(reasons)}
    yield "verdicts_total", "counter", "Responses that got their verdict.", states
    yield "refusals_total", "counter", "Responses refused for a reason.", codes
    seconds, times = total.get("seconds", {}).get("decide", 0), sum(verdicts.values())
    samples = {"_sum": f"{seconds:.3f}", "_count": f"{times:.0f}"}
    yield "decide_seconds", "summary", "Seconds spent on deciding.", samples
    for name, what in _GAUGES.items():
        if (value := gauges[name]) is not None:
            yield name, "gauge", what, {"": f"{value:.3f}" if "time" in name else f"{value:.0f}"}


def metrics(counts: Mapping[Key, float], gauges: Mapping[str, float | None]) -> str:
    """Return the text of the file, with the sums and the gauges' values."""
    lines = list[str]()
    for name, kind, what, samples in _families(counts, gauges):
        lines += [f"# HELP patchq_{name} {what}", f"# TYPE patchq_{name} {kind}"]
        lines += [f"patchq_{name}{label} {value}" for label, value in samples.items()]
    return "".join(f"{line}\n" for line in lines)


def write(path: Path, text: str) -> bool:
    """Replace the file, whose directory must exist; return False if that fails."""
    # The node exporter reads what ends in `.prom`, so the scratch file must not.
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        files.replace(path, text.encode(), via=scratch)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink()
        _LOG.warning("%s: the statistics cannot be written: %s", path, error.strerror)
        return False
    return True
