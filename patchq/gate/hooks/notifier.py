"""Letting hooks know of verdicts, beside the work: what they do or fail to do changes nothing.

A verdict is told of once it can be seen.  Whoever dies between the two has told nobody, and the
report is there all the same; so a hook that must not miss one looks at the queue itself.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from errno import ENODATA
from pathlib import Path
from threading import Event, Lock

from msgspec.structs import replace

from patchq.core.model.values import HookRun, State
from patchq.gate.errors import Cancelled, Fault
from patchq.gate.hooks.configured import Step, Steps
from patchq.gate.hooks.engine import Engine
from patchq.gate.hooks.verdict import tail
from patchq.gate.queue.spool import report
from patchq.gate.report import logs
from patchq.gate.report.schema import Report, kind_of

_LOG = logging.getLogger("patchq")
_AT_ONCE = 2
_MOST_KEPT = 1000
"""Characters of what a hook says that is told, which its report keeps."""
_PLACES = ("done", "rejected", "active")


class Notifier:
    """Runs the hooks that are told, each at most twice at once: one that hangs keeps neither the
    others nor the work waiting.  What waits is read from its report when its turn comes, where the
    queue has that in a file here.

    They start in `gitdir`, so that no branch that is checked out has a say in what runs; git's own
    hooks start in `top`, as git has them.
    """

    def __init__(self, engine: Engine, queue: Path, gitdir: Path, top: Path, cut: Event) -> None:
        self._engine, self._queue, self._cut = engine, queue, cut
        self._gitdir, self._top = gitdir, top
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._hung: set[str] = set()
        """The hooks that did not end the last time."""
        self._closing = False
        self._lock = Lock()
        self._untold: Counter[str] = Counter()
        self._due: set[tuple[str, str]] = set()
        """What keeps in step and has still to begin, and of which batch: once is enough."""
        self._runs: deque[tuple[str, HookRun]] = deque()
        self._elsewhere: dict[str, tuple[Report, int]] = {}
        """The newest reports that no file here has, and how many runs are to hear of each."""

    def tell(self, steps: Steps, report: Report) -> None:
        """Have the hooks that hear of such a verdict run soon."""
        for step in steps.told:
            if kind_of(report) in step.hears:
                self._soon(step, report)

    def follow(self, steps: Steps, before: Report | None, report: Report) -> None:
        """Have the hooks run soon that hear of what a report says since it was rewritten, or keep
        something as it says."""
        kind, last = kind_of(report), before and (before.state, before.commit)
        changed = before is None or kind_of(before) != kind
        for step in steps.told:
            moved = step.in_step and last != (report.state, report.commit)
            if moved or (changed and not step.in_step and kind in step.hears):
                self._soon(step, report)

    def runs(self, most: int) -> list[tuple[str, HookRun]]:
        """What the hooks said and was not asked for yet, each with the batch that it was told
        of."""
        return [self._runs.popleft() for _ in range(min(most, len(self._runs)))]

    def _soon(self, step: Step, report: Report) -> None:
        paths = [edit.path for edit in report.edits]
        if paths and not step.git and not step.wants(paths):
            return
        if step.in_step:
            if (step.id, report.id) in self._due:
                self._keep(report, 0)
                return
            self._due.add((step.id, report.id))
        self._keep(report, 1)
        if step.id not in self._pools:
            self._pools[step.id] = ThreadPoolExecutor(_AT_ONCE, "told")
        state, kind = report.state, kind_of(report) or ""
        self._pools[step.id].submit(self._run, step, report.id, state, kind)

    def _path(self, id: str) -> Path | None:
        """Where the report stands by now, if it stands here."""
        places = [self._queue / folder / f"{id}.report.json" for folder in _PLACES]
        return next((path for path in places if path.exists()), None)

    def _keep(self, report: Report, more: int) -> None:
        """Keep a report that no file here has for those that wait, and so many `more`."""
        with self._lock:
            _, waiting = self._elsewhere.get(report.id, (report, 0))
            if waiting + more and self._path(report.id) is None:
                self._elsewhere[report.id] = report, waiting + more

    def _known(self, id: str) -> Report | None:
        """The newest report that no file here has."""
        with self._lock:
            known, waiting = self._elsewhere.pop(id, (None, 0))
            if known is not None and waiting > 1:
                self._elsewhere[id] = known, waiting - 1
            return known

    def _run(self, step: Step, id: str, state: State, kind: str) -> None:
        self._due.discard((step.id, id))
        known = self._known(id)
        if self._cut.is_set() or (self._closing and step.id in self._hung):
            self._untold[step.id] += 1
            return
        with logs.about(id):
            try:
                path = self._path(id)
                told = known if path is None else report(path.read_bytes())
                if told is None:
                    raise OSError(ENODATA, os.strerror(ENODATA))
                told = replace(told, state=state)
                where = self._top if step.git else self._gitdir
                run = self._engine.tell(step, told, kind, path, where, self._cut)
                if run.output or run.exit != 0:
                    kept = replace(run, output=tail(run.output, _MOST_KEPT))
                    self._runs.append((id, kept))
                hung = self._engine.see(step, run, id)
                (self._hung.add if hung else self._hung.discard)(step.id)
                if run.exit != 0:
                    how = "did not end in time" if run.exit is None else f"ended with {run.exit}"
                    _LOG.warning("the hook %s %s for %s: %s", step.id, how, id, run.output)
            except Cancelled:
                self._untold[step.id] += 1
            except OSError as error:
                _LOG.warning("the hook %s was not told of %s: %s", step.id, id, error.strerror)
            except Fault as fault:
                _LOG.warning("the hook %s was not told of %s: %s", step.id, id, fault.message)
            except Exception:  # a thread of a pool would keep a defect to itself
                _LOG.exception("the hook %s did not run for %s", step.id, id)

    def close(self) -> None:
        """Wait until everything was told, but for what waits behind a hook that hangs."""
        self._closing = True
        for pool in self._pools.values():
            pool.shutdown()
        for step, number in self._untold.items():
            _LOG.warning("the hook %s was ended, or does not end: %d left untold", step, number)
        self._untold.clear()
