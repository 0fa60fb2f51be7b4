"""Run hooks that follow verdicts, beside the work: their ends change nothing.

A hook hears of a verdict once that can be seen.  A death between the two leaves it unheard, and the
report is there all the same; so a hook that must not miss one looks at the queue itself.
"""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

from msgspec.structs import replace

from patchq.core.model.values import HookRun, State
from patchq.gate.errors import Cancelled, Fault
from patchq.gate.hooks.configured import Step, Steps
from patchq.gate.hooks.engine import Engine, tail
from patchq.gate.queue.spool import report
from patchq.gate.report import logs
from patchq.gate.report.schema import EventKind, Report, kind_of

_LOG = logging.getLogger("patchq")
_AT_ONCE = 2
_MOST_OUTPUT = 1000  # characters that a report keeps
_PLACES = ("done", "rejected", "active")
Key = tuple[str, str, object]


class Notifier:
    """The runner of notified hooks, at most two runs of each at once.

    So a hook that hangs keeps neither others nor work waiting.  Hooks start in `gitdir`, so that no
    branch that is checked out has a say in what runs; git's own start in `top`, as git has them.
    """

    def __init__(self, engine: Engine, queue: Path, gitdir: Path, top: Path, cut: Event) -> None:
        self._engine, self._queue, self._cut = engine, queue, cut
        self._gitdir, self._top = gitdir, top
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._hung: set[str] = set()  # hooks that did not end the last time
        self._closing = False
        self._lock = Lock()
        # State and report of each run that waits; a report in a file is read when it begins.
        self._due: dict[Key, tuple[State, Report | None]] = {}
        self._runs: deque[tuple[str, HookRun]] = deque()

    def tell(self, steps: Steps, report: Report) -> None:
        for step in steps.following:
            if kind_of(report) in step.hears:
                self._soon(step, report, kind_of(report))

    def follow(self, steps: Steps, before: Report | None, report: Report) -> None:
        """Schedule the hooks that hear of a report's change, or keep in step."""
        kind, last = kind_of(report, before), before and (before.state, before.commit)
        changed = before is None or kind_of(before) != kind
        for step in steps.following:
            moved = step.in_step and last != (report.state, report.commit)
            if moved or (changed and not step.in_step and kind in step.hears):
                self._soon(step, report, kind)

    def runs(self, most: int) -> list[tuple[str, HookRun]]:
        """Take at most `most` ended runs, each with its batch's id."""
        return [self._runs.popleft() for _ in range(min(most, len(self._runs)))]

    def _soon(self, step: Step, report: Report, kind: EventKind | None) -> None:
        # A hook that keeps in step runs once for all changes of a batch until it begins.
        key = step.hook.id, report.id, None if step.in_step else object()
        kept = report if self._path(report.id) is None else None
        with self._lock:
            waits = key in self._due
            self._due[key] = report.state, kept
        if not waits:
            pool = self._pools.setdefault(step.hook.id, ThreadPoolExecutor(_AT_ONCE, "hooks"))
            pool.submit(self._run, step, key, kind or "")

    def _path(self, id: str) -> Path | None:
        """Return the file of the report, which a queue on PostgreSQL does not have."""
        places = (self._queue / folder / f"{id}.report.json" for folder in _PLACES)
        return next(filter(Path.exists, places), None)

    def _run(self, step: Step, key: Key, kind: str) -> None:
        with self._lock:
            state, kept = self._due.pop(key)
        with logs.about(id := key[1]):
            try:
                if self._cut.is_set() or (self._closing and step.hook.id in self._hung):
                    raise Cancelled
                self._heard(step, id, state, kept, kind)
            except Cancelled:
                _LOG.warning("the hook %s was ended, or does not end: %s untold", step.hook.id, id)
            except (OSError, Fault) as error:
                _LOG.warning("the hook %s did not hear of %s: %s", step.hook.id, id, error)
            except Exception:  # a thread of a pool would keep a defect to itself
                _LOG.exception("the hook %s did not run for %s", step.hook.id, id)

    def _heard(self, step: Step, id: str, state: State, kept: Report | None, kind: str) -> None:
        if (path := self._path(id)) is not None:
            kept = report(path.read_bytes())
        if kept is None:
            raise FileNotFoundError("its report is gone")
        where = self._top if step.git else self._gitdir
        run = self._engine.tell(step, replace(kept, state=state), kind, path, where, self._cut)
        if run.output or run.exit != 0:
            self._runs.append((id, replace(run, output=tail(run.output, _MOST_OUTPUT))))
        hung = self._engine.record_trouble(step.hook, run, id)
        (self._hung.add if hung else self._hung.discard)(step.hook.id)
        if run.exit != 0:
            end = "did not end in time" if run.exit is None else f"ended with {run.exit}"
            _LOG.warning("the hook %s %s for %s: %s", step.hook.id, end, id, run.output)

    def close(self) -> None:
        """Wait until all have run, but for those behind a hook that hangs."""
        self._closing = True
        for pool in self._pools.values():
            pool.shutdown()
