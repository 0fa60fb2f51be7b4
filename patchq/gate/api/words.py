"""Words that people read of a change: its verdict, age, size, files and checks."""

from __future__ import annotations

import time

from patchq.core.text.quote import visible
from patchq.gate.api.rows import ChangeRow, seconds
from patchq.gate.land.running import RunningTrain
from patchq.gate.queue.inbox import Pending
from patchq.gate.report.schema import STOPPED, Moment, ProblemEntry, Report
from patchq.gate.review.risk import earlier

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LONGEST_NAME = 40
_MINUS = "\N{MINUS SIGN}"


def line(report: Report) -> str:
    """One plain line for a verdict: state, id, and where it is or why it is not."""
    state, other = report.state, report.duplicate_of
    text = f"{state:<10} {report.id}"
    errors = [p for p in report.problems if p.severity == "error"]
    warnings = [p for p in report.problems if p.severity == "warning"]
    if state in STOPPED:
        reasons = errors or warnings
        text += f"  {reason(reasons[0])}" if reasons else ""
        text += f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    elif state == "duplicate":
        text += f"  of {other}" if other else "  nothing to do"
    else:
        where = report.branch or report.target or ""
        text += f"  {where} {(report.commit or '')[:12]}".rstrip()
        text += f"  by {other}" if other else ""
        text += "".join(f"  [{code}]" for code in dict.fromkeys(p.code for p in warnings))
    return visible(text)


def reason(problem: ProblemEntry) -> str:
    """Return code and message as one line; the further ones have the output of a hook."""
    first, _, more = problem.message.partition("\n")
    return f"{problem.code}: {first}{' …' if more else ''}"


def pending(one: Pending) -> str:
    """One plain line for a response without a verdict."""
    return visible(f"{one.state:<10} {one.id}  {one.summary()}")


def train(one: RunningTrain) -> str:
    """One plain line for a train that runs."""
    first = f"the first {one.first} of {one.joined}" if one.first < one.joined else str(one.first)
    what = first if one.first else f"{one.target} itself"
    by, since = ", ".join(one.hooks), clock(max(0, time.time() - one.since))
    return visible(f"train for {one.target}, run {one.run}: checks {what} by {by} for {since}")


def count(number: int, name: str) -> str:
    """Return a number of things, by the name of one."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def clock(seconds: float) -> str:
    """Return minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def age(*moments: Moment | float | None) -> str:
    """Return the time since the first known moment, for people.

    It is in the largest unit of which at least two have passed.
    """
    known = (one if isinstance(one, float) else seconds(one) for one in moments if one is not None)
    began = next(known, None)
    if began is None:
        return "-"
    passed = max(0, int(time.time() - began))
    unit = next((name for name in reversed(UNITS) if passed >= 2 * UNITS[name]), "s")
    return f"{passed // UNITS[unit]}{unit}"


def size_of(row: ChangeRow) -> str:
    """Return the counts of added and deleted lines, or a binary file's sizes."""
    size = row.report.size
    if row.binaries:
        before, after = next(iter(row.binaries.values()))
        return f"binary {_bytes(before)} → {_bytes(after)}"
    return f"+{size.added} {_MINUS}{size.deleted}" if size else ""


def _bytes(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.1f} kB"


def files_of(row: ChangeRow) -> str:
    """Return the first file of a change and the number of others.

    A renamed file is `old → new`.
    """
    names, size = [_short(path) for path in row.paths], row.report.size
    if row.renames:
        names = [f"{_short(old)} → {_short(new)}" for new, old in row.renames.items()]
    count = max(len(names), size.files if size else 0)
    first = next(iter(names), "")
    return f"{first} (+{count - 1})" if count > 1 else first


def _short(name: str) -> str:
    return f"…{name[-_LONGEST_NAME:]}" if len(name) > _LONGEST_NAME else name


def author_and_subject(report: Report) -> str:
    """Return the agent, and the subject of the commit."""
    return ": ".join(filter(None, (report.agent, report.message)))


def checks_of(row: ChangeRow) -> str:
    """Return the result of the project's own checks."""
    runs = row.checks
    if not runs:
        return "not run"
    failed = [run.id for run in runs if run.exit != 0]
    names = failed or [run.id for run in runs]
    where = "" if failed else earlier(row.report, row.risk.landings if row.risk else 0)
    return f"{'failed' if failed else 'passed'}: {', '.join(dict.fromkeys(names))}{where}"
