"""Asking one hook about one candidate, or letting it know of one event.

A hook runs in a slot with its work tree, and no more hooks are asked at a time than there are
processors.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock
from typing import Any

from msgspec import Struct

from patchq.core.model.values import HookRun
from patchq.gate.config.schema import Hook
from patchq.gate.errors import Cancelled, DiskFault, HookFault
from patchq.gate.git.object_buffer import write_loose
from patchq.gate.hooks import mounts
from patchq.gate.hooks.configured import MESSAGE, Step
from patchq.gate.hooks.sandbox import Job, can_sandbox, no_sandbox, run
from patchq.gate.hooks.verdict import Verdict, as_run, judged, verdict
from patchq.gate.hooks.warm import Objects, ReusableTree, Slot, slot, stores
from patchq.gate.queue.shelf import Shelf, Troubles
from patchq.gate.queue.spool import digest, encode
from patchq.gate.report import secrecy
from patchq.gate.report.schema import Report

_LOG = logging.getLogger("patchq")
# Remembered passes, each the changed paths that passed, as a hook may look at these alone. A
# refusal is not remembered: it may come from what is outside of the tree.
_MOST_PASSES = 8192


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class HookInput(Struct, frozen=True, dict=True):
    """A batch and its candidate as hooks may know them, in plain values, ids in hex."""

    id: str
    target: str
    base: str
    parent: str
    parent_tree: str
    commit: str
    tree: str
    paths: tuple[str, ...]
    message: str
    plan: Mapping[str, Any]
    lend: Callable[[], Objects] = dict
    """Gives the objects of the commit that are not written yet."""

    @cached_property
    def objects(self) -> Objects:
        return self.lend()


class Engine:
    """Runs hooks below the directory `root`; `store` has the real repository's objects, `git_hooks`
    its hooks, and what an entry names as `visible` is below `home`."""

    def __init__(self, root: Path, store: Path, git_hooks: Path, home: Path) -> None:
        self._root, self._store, self._home = root, store, home
        self._rooms = root / "rooms"  # for hooks that see no tree
        self._passes = Shelf(root.parent, "pass", _MOST_PASSES)
        self.troubles = Troubles(root.parent)
        self._free = BoundedSemaphore(processors())
        self._trying = Lock()
        self._can: bool | None = None
        # Has git in a hook find the repository's other hooks, as `pre-applypatch` likes to.
        self._git_env = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.hooksPath",
            "GIT_CONFIG_VALUE_0": str(git_hooks),
        }

    def ask(self, step: Step, candidate: HookInput, stop: Event) -> Verdict:
        """Return the hook's verdict.

        Raises `HookFault` if it cannot be started, `Cancelled` once `stop` is set."""
        if step.judge is not None:
            return judged(step, step.judge, candidate.plan)
        # What sees the plan sees a difference, and what is git's own sees it as HEAD's.
        against = candidate.parent_tree if step.hook.stage == "pre-apply" or step.git else ""
        key = digest(candidate.tree, against, step.hook.id, step.digest)
        changed = sorted(map(os.fsencode, candidate.paths))
        passed = self._passes.get(key) if step.hook.cache else None
        if passed is not None and set(changed).issubset(passed.split(b"\0")):
            return Verdict(
                HookRun(step.hook.id, step.hook.stage, 0, 0.0, "passed before, on the same tree")
            )
        with nullcontext() if step.trusted else self._free:  # it works elsewhere
            if stop.is_set():
                raise Cancelled
            try:
                answer = self._run(step, candidate, stop)
            except OSError as error:
                raise DiskFault(f"cannot prepare for the hook {step.hook.id}: {error}") from None
        self.see(step.hook, answer.run, candidate.id.rpartition(" ")[2])
        if step.hook.cache and not (answer.problems or answer.fixed or answer.message):
            self._passes.put(key, b"\0".join(changed))
        return answer

    def see(self, hook: Hook, run: HookRun, id: str) -> bool:
        """Note a hook that does not do what it is for, or that it does again; whether it hung."""
        name, follows = f"hook.{hook.id}", hook.stage.startswith("post-")
        if run.exit is None:
            how = f"did not end within {hook.timeout_seconds:g} s"
            cure = "see what it waits for, or set its `timeout_seconds`"
        elif run.exit and follows:
            lines = run.output.strip().splitlines()
            how = f"ended with {run.exit}{': ' + lines[-1] if lines else ''}"
            cure = "correct it; it does not run for the same change again"
        else:
            self.troubles.over(name)
            return False
        message = f"the hook {hook.id} ({hook.stage}) {how}, the last time for change {id}"
        self.troubles.note(name, secrecy.without(message), f"{cure}; changes get their verdicts")
        return run.exit is None

    def _run(self, step: Step, candidate: HookInput, stop: Event) -> Verdict:
        sees = step.hook.stage == "pre-commit" and not step.trusted
        sandboxed = not step.trusted and self._sandboxed()
        if sees and not (sandboxed or step.hook.unconfined):
            why, cure = no_sandbox()
            if not step.git:
                cure += "; or let it read and print whatever this user can read, by "
                cure += "`unconfined: true` in its entry"
            raise HookFault(
                f"the hook {step.hook.id} cannot be used: it runs what changes hold, and there "
                f"is no sandbox here, as {why}",
                cure,
            )
        head = candidate.parent if step.git else candidate.commit
        with slot(self._root if sees else self._rooms, candidate.tree) as own:
            warm = ReusableTree(own.path, self._store)
            if sees:
                warm.show(candidate.tree, head, candidate.objects)
                message = warm.gitdir / MESSAGE
                message.unlink(missing_ok=True)
                if step.git:
                    message.write_text(candidate.message, encoding="utf-8")
            if step.trusted:  # it hands the commit on
                write_loose(self._store, candidate.objects.values(), flush=True)
            env = _environment(
                step,
                own,
                candidate.paths,
                BATCH=candidate.id,
                TARGET=candidate.target,
                BASE=candidate.base,
                COMMIT=candidate.commit,
            )
            job = Job(
                argv=step.argv,
                env=env | (self._git_env if step.git else {}),
                where=self._home if step.trusted else warm.tree if sees else own.room / "empty",
                room=own.room,
                lock=own.lock,
                timeout=step.hook.timeout_seconds,
                sandboxed=sandboxed,
                shown=self._shown(step, own, sees) if sandboxed else (),
                tree=warm.tree if sees else None,
                stdin=b"" if step.git else json.dumps(candidate.plan).encode(),
                network=step.hook.uses_network or not sandboxed,
            )
            if sees and not sandboxed:
                warm.lend()
            try:
                with run(job, stop) as end:
                    return verdict(step, candidate.message, warm, end)
            finally:
                if sees and not sandboxed:
                    warm.remove()

    def _shown(self, step: Step, own: Slot, sees: bool) -> Sequence[str]:
        """Return the places that it sees.  Raises `HookFault` if its entry names an unfit one."""
        visible = [mounts.located(place, self._home) for place in step.hook.visible]
        for place in visible:
            if why := mounts.unfit(place, (self._store.parent, self._root.parent)):
                raise HookFault(
                    f"the hook {step.hook.id} cannot be used: {place}, in its `visible`, {why}",
                    "name what the hook's programs need, and nothing else",
                )
        path = os.pathsep.join((step.env["PATH"], *step.parts))
        facts = [own.path / "files", *(stores(self._store) if sees else ())]
        return [*mounts.seen(path, visible), *(f"+{fact}" for fact in facts)]

    def _sandboxed(self) -> bool:
        with self._trying:
            if self._can is None:
                self._can = can_sandbox(self._root)
                if not self._can:
                    _LOG.warning(
                        "no hook runs in a sandbox here, as %s: those that run may read and write "
                        "what patchq may, and use the network",
                        no_sandbox()[0],
                    )
            return self._can

    def tell(
        self, step: Step, report: Report, kind: str, path: Path | None, where: Path, cut: Event
    ) -> HookRun:
        """Let a hook know of an event, whose report is at `path`, or is put into a file for it; it
        runs in the directory `where`, as a plain process; without a network if it is to have none.
        Raises `Cancelled` once `cut` is set."""
        with slot(self._rooms) as own:
            if path is None:
                path = own.room / f"{report.id}.report.json"
                path.write_bytes(encode(report))
            env = _environment(
                step,
                own,
                dict.fromkeys(edit.path for edit in report.edits),
                BATCH=report.id,
                TARGET=report.target or "",
                BASE=report.base.commit if report.base else "",
                COMMIT=report.commit or "",
                REPORT=str(path),
                STATE=report.state,
                EVENT=kind,
            )
            job = Job(
                argv=step.argv,
                env=env,
                where=where,
                room=own.room,
                lock=own.lock,
                timeout=step.hook.timeout_seconds,
                sandboxed=False,
                stdin=b"" if step.git else encode(report),
                network=step.hook.uses_network or not self._sandboxed(),
            )
            with run(job, cut) as end:
                return as_run(step, end)


def _environment(step: Step, own: Slot, paths: Iterable[str], **facts: str) -> dict[str, str]:
    """Return a hook's environment: the `facts` as `PATCHQ_…`, the paths in a file."""
    names = own.path / "files"
    names.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
    return {
        **(os.environ if step.trusted else {"HOME": str(own.room / "home")}),
        **step.env,
        **({"PATCHQ_FIXES": "1"} if step.hook.fixes else {}),
        "PATCHQ_STAGE": step.hook.stage,
        "PATCHQ_FILES": str(names),
        **{f"PATCHQ_{name}": fact for name, fact in facts.items()},
    }
