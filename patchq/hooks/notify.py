"""Letting hooks know of verdicts, beside the work: what they do or fail to do changes nothing.

A verdict is told of once it can be seen.  Whoever dies between the two has told nobody, and the
report is there all the same; so a hook that must not miss one looks at the queue itself.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore

from patchq.hooks.engine import Engine
from patchq.hooks.steps import Step, Steps
from patchq.model.errors import Fault
from patchq.model.report import LANDED, Report
from patchq.report import logs

_LOG = logging.getLogger("patchq")
_AT_ONCE = 2
_MOST_WAITING = 256
_FOLDERS = {"applied": "done", "proposed": "done", "accepted": "done", "rejected": "rejected"}


class Notifier:
    """Runs the hooks that are told, at most two at once.  Where very many wait, whoever tells
    waits, too."""

    def __init__(self, engine: Engine, queue: Path, where: Path) -> None:
        self._engine, self._queue, self._where = engine, queue, where
        self._pool = ThreadPoolExecutor(_AT_ONCE, "told")
        self._room = BoundedSemaphore(_MOST_WAITING)

    def tell(self, steps: Steps, report: Report) -> None:
        """Have the hooks for the report's state run soon."""
        folder = _FOLDERS.get(report["state"])
        if folder is None:
            return
        path = self._queue / folder / f"{report['id']}.report.json"
        paths = [edit["path"] for edit in report["edits"]]
        landed = report["state"] in LANDED
        for step in steps.after if folder == "done" else steps.rejected:
            if landed if step.git else step.wants(paths) or not paths:
                self._room.acquire()
                self._pool.submit(self._run, step, report, path)

    def _run(self, step: Step, report: Report, path: Path) -> None:
        id = report["id"]
        with logs.about(id):
            try:
                run = self._engine.tell(step, report, path, self._where)
                if run.exit != 0:
                    how = "did not end in time" if run.exit is None else f"ended with {run.exit}"
                    _LOG.warning("the hook %s %s for %s: %s", step.id, how, id, run.output)
            except Fault as fault:
                _LOG.warning("the hook %s was not told of %s: %s", step.id, id, fault.message)
            finally:
                self._room.release()

    def close(self) -> None:
        """Wait until everything was told."""
        self._pool.shutdown()
