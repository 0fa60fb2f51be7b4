"""Ask hooks about a candidate, or notify them of an event.

A hook runs in a slot with its work tree, and no more hooks are asked at a time than there are
processors.  Those that follow verdicts run beside the work: their ends change nothing.  A hook
hears of a verdict once that can be seen.  A death between the two leaves it unheard, and the report
is there all the same; so a hook that must not miss one looks at the queue itself.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from patchq.core.model.values import HookRun, Problem
from patchq.core.text.quote import clip
from patchq.gate.config.schema import Hook
from patchq.gate.errors import Cancelled, DiskFault, Fault, HookFault
from patchq.gate.git.checkout import obstacle
from patchq.gate.git.object_buffer import write_loose
from patchq.gate.hooks import mounts
from patchq.gate.hooks.configured import MESSAGE, Judge, Step, Steps
from patchq.gate.hooks.sandbox import HookExit, Job, can_sandbox, no_sandbox, run
from patchq.gate.hooks.warm import Objects, Slot, slot, stores
from patchq.gate.queue.shelf import Shelf, Troubles
from patchq.gate.queue.spool import digest, encode
from patchq.gate.report import logs, secrecy
from patchq.gate.report.schema import EventKind, Report, kind_of

_LOG = logging.getLogger("patchq")
# Remembered passes, each the changed paths that passed, as a hook may look at these alone. A
# refusal is not remembered: it may come from what is outside of the tree.
_MOST_PASSES = 8192
_MOST_SHOWN = 4000  # characters of a hook's output that a report shows, the last ones
_MESSAGE_CHARS = 1000
_FILE_BYTES = 64 * 1024 * 1024
_SECRET = "edit.secret:"
_AT_ONCE = 2  # runs of a hook that is notified
_PLACES = ("done", "rejected", "active")
Key = tuple[str, str, object]
_CANNOT_START = (126, 127)  # a shell's exit codes for a program that it cannot start

# Files that a hook changed: content and if executable, None where it removed one.
Fixed = Mapping[str, tuple[bytes, bool] | None]


class HookInput(Struct, frozen=True):
    """A batch and its candidate as hooks see them, in plain values.

    Ids are in hex.
    """

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
    objects: Callable[[], Objects] = dict  # those of the commit that are not written yet

    @property
    def label(self) -> str:
        """The batch's id, or the first and the last of several."""
        ids = self.id.split()
        return " … ".join(dict.fromkeys((ids[0], ids[-1])))


class Verdict(Struct, frozen=True):
    """A hook's answer; `problems` refuse the batch, `fixed` and `message` change it."""

    run: HookRun
    problems: tuple[Problem, ...] = ()
    fixed: Fixed = field(default_factory=dict)
    message: str | None = None


class Engine:
    """Runs hooks below the directory `root`; `store` has the real repository's objects, `git_hooks`
    its hooks, and what an entry names as `visible` is below `home`."""

    def __init__(self, root: Path, store: Path, git_hooks: Path, home: Path) -> None:
        self._root, self._store, self._home = root, store, home
        self._passes = Shelf(root.parent, "pass", _MOST_PASSES)
        self.troubles = Troubles(root.parent)
        mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._free = BoundedSemaphore(mine or 1)
        # Has git in a hook find the repository's other hooks, as `pre-applypatch` likes to.
        self._git_env = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.hooksPath",
            "GIT_CONFIG_VALUE_0": str(git_hooks),
        }

    def ask(self, step: Step, candidate: HookInput, stop: Event) -> Verdict:
        """Return the hook's verdict.

        A hook that does not start with the candidate's tree refuses it, if it starts with the
        tree before; else this raises `HookFault`.  Raises `Cancelled` once `stop` is set."""
        if step.judge is not None:
            return _judged(step, step.judge, candidate.plan)
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
        if answer.run.exit in _CANNOT_START:
            if not step.sees_tree or candidate.tree == candidate.parent_tree:
                raise _fault(answer.run, candidate)
            before = replace(candidate, commit=candidate.parent, tree=candidate.parent_tree)
            self.ask(step, before, stop)
        self.record_trouble(step.hook, answer.run, candidate.id.rpartition(" ")[2])
        if step.hook.cache and not (answer.problems or answer.fixed or answer.message):
            self._passes.put(key, b"\0".join(changed))
        return answer

    def record_trouble(self, hook: Hook, run: HookRun, id: str) -> bool:
        """Note that a hook has trouble, or has none any more; return True if it hung."""
        name = f"hook.{hook.id}"
        if run.exit == 0 or (run.exit and hook.stage.startswith("pre-")):
            self.troubles.over(name)
            return False
        how = "did not end in time" if run.exit is None else f"ended with {run.exit}"
        last = run.output.strip().rpartition("\n")[2]
        message = f"the hook {hook.id} ({hook.stage}) {how}, the last time for change {id}: {last}"
        cure = "correct what it waits for, its `run` or its `timeout_seconds`"
        self.troubles.note(name, secrecy.without(message), f"{cure}; changes get their verdicts")
        return run.exit is None

    def _run(self, step: Step, candidate: HookInput, stop: Event) -> Verdict:
        sees = step.sees_tree
        sandboxed = not step.trusted and self._sandboxes
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
        root = self._root if sees else self._root / "rooms"
        with slot(root, self._store, candidate.tree) as own:
            if sees:
                own.show(candidate.tree, head, candidate.objects())
                message = own.gitdir / MESSAGE
                message.unlink(missing_ok=True)
                if step.git:
                    message.write_text(candidate.message, encoding="utf-8")
            if step.trusted:  # it hands the commit on
                write_loose(self._store, candidate.objects().values(), flush=True)
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
                where=self._home if step.trusted else own.tree if sees else own.room / "empty",
                room=own.room,
                lock=own.lock,
                timeout=step.hook.timeout_seconds,
                sandboxed=sandboxed,
                shown=self._shown(step, own, sees) if sandboxed else (),
                tree=own.tree if sees else None,
                stdin=b"" if step.git else json.dumps(candidate.plan).encode(),
                network=step.hook.uses_network or not sandboxed,
            )
            lent = own.lent() if sees and not sandboxed else nullcontext()
            with lent, run(job, stop) as end:
                return _verdict(step, candidate.message, own, end)

    def _shown(self, step: Step, own: Slot, sees: bool) -> Sequence[str]:
        """Return the places that it sees."""
        visible = [mounts.located(place, self._home) for place in step.hook.visible]
        path = os.pathsep.join((step.env["PATH"], *step.parts))
        facts = [own.path / "files", *(stores(self._store) if sees else ())]
        return [*mounts.seen(path, visible), *(f"+{fact}" for fact in facts)]

    @cached_property
    def _sandboxes(self) -> bool:
        if not (can := can_sandbox(self._root)):
            _LOG.warning(
                "no hook runs in a sandbox here, as %s: those that run may read and write what "
                "patchq may, and use the network",
                no_sandbox()[0],
            )
        return can

    def tell(
        self, step: Step, report: Report, kind: str, path: Path | None, where: Path, cut: Event
    ) -> HookRun:
        """Notify a hook of an event.

        `path` is the report's file; without one, the report is put into a file for the hook.  The
        hook runs in the directory `where`, as a plain process, without a network if it is to have
        none.  Raises `Cancelled` once `cut` is set.
        """
        with slot(self._root / "rooms", self._store) as own:
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
                network=step.hook.uses_network or not self._sandboxes,
            )
            with run(job, cut) as end:
                return _as_run(step, end)


def _environment(step: Step, own: Slot, paths: Iterable[str], **facts: str) -> dict[str, str]:
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


def tail(output: str, most: int) -> str:
    return output if len(output) <= most else "…" + output[-most:]


def _as_run(step: Step, end: HookExit) -> HookRun:
    return HookRun(
        step.hook.id, step.hook.stage, end.code, end.seconds, tail(end.output.strip(), _MOST_SHOWN)
    )


def _verdict(step: Step, message: str, warm: Slot, end: HookExit) -> Verdict:
    """Return the meaning of a hook's end, for the commit with this message."""
    run = _as_run(step, end)
    if end.code != 0:
        return Verdict(run, (_refusal(step.hook, run),))
    if not step.hook.fixes:
        return Verdict(run)
    changed = [f".git/{MESSAGE}"] if step.git else warm.changed(end.tree, end.enter)
    try:
        fixed = {path: _content(Path(f"{end.root}{end.tree}"), path) for path in changed}
    except ValueError as error:
        problem = Problem(
            "hook.refused",
            f"the hook {step.hook.id} {error}, which no change may",
            "nothing to correct in the response: have the hook looked after",
        )
        return Verdict(run, (problem,))
    if not step.git:
        return Verdict(run, fixed=fixed)
    [written] = fixed.values()
    text = written[0].decode("utf-8", "replace") if written else message
    return Verdict(run, message=text if text.strip() != message.strip() else None)


def _fault(run: HookRun, candidate: HookInput) -> HookFault:
    output = tail(run.output, _MESSAGE_CHARS)
    return HookFault(
        f"the hook {run.id} cannot be started for {candidate.label} (exit {run.exit})"
        f"{output and f': {output}'}",
        "no change is to blame: correct its `run`, then start again; `patchq config check` finds a "
        "program that is missing",
    )


def _content(there: Path, path: str) -> tuple[bytes, bool] | None:
    """Return a file as the hook left it; ValueError if that cannot be committed."""
    if (above := obstacle(there, path)) is not None:
        if os.path.lexists(there / path):
            raise ValueError(f"made {above} something other than a directory")
        return None
    try:
        fd = os.open(there / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"left {path} unreadable ({error.strerror})") from None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
            raise ValueError(f"made {path} something other than a file of a fair size")
        return file.read(_FILE_BYTES), bool(status.st_mode & 0o100)


def _refusal(hook: Hook, run: HookRun) -> Problem:
    output = f"\n{tail(run.output, _MESSAGE_CHARS)}" if run.output else ""
    if run.exit is None:
        return Problem(
            "hook.timeout",
            f"the hook {hook.id} ({hook.stage}) did not end within "
            f"{hook.timeout_seconds:g} seconds and was stopped{output}",
        )
    how = f"exit {run.exit}"
    if run.exit in _CANNOT_START:
        how += ", as it starts without the change and not with it"
    if run.exit > 128 and run.exit - 128 in set(signal.Signals):
        how += f", ended by {signal.Signals(run.exit - 128).name}"
    return Problem(
        "hook.refused",
        f"the hook {hook.id} ({hook.stage}) refused the change: {how}{output}",
    )


def _judged(step: Step, judge: Judge, plan: Mapping[str, Any]) -> Verdict:
    try:
        lines = judge(plan)
    except ValueError as error:
        raise HookFault(f"the hook {step.hook.id} cannot be used: {error}") from None
    output = clip("\n".join(lines), _MOST_SHOWN)
    run = HookRun(step.hook.id, step.hook.stage, 1 if lines else 0, 0.0, output)
    problems = [
        Problem("edit.secret", line.removeprefix(_SECRET).strip())
        for line in lines
        if line.startswith(_SECRET)
    ]
    if others := [line for line in lines if not line.startswith(_SECRET)]:
        message = f"the hook {step.hook.id} ({step.hook.stage}) refused the change\n"
        problems.append(Problem("hook.refused", message + tail("\n".join(others), _MESSAGE_CHARS)))
    return Verdict(run, tuple(problems))


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
        self._due: dict[Key, Report] = {}  # of each run that waits

    def tell(self, steps: Steps, report: Report, before: Report | None) -> None:
        """Schedule the hooks that hear of a verdict, or of its change since `before`."""
        kind = kind_of(report, before)
        is_new = before is None or kind_of(before) != kind
        moved = before and (before.state, before.commit) != (report.state, report.commit)
        for step in steps.following:
            if (is_new and kind in step.hears) or (moved and step.in_step):
                self._soon(step, report, kind)

    def _soon(self, step: Step, report: Report, kind: EventKind | None) -> None:
        # A hook that keeps in step runs once for all changes of a batch until it begins.
        key = step.hook.id, report.id, None if step.in_step else object()
        with self._lock:
            waits = key in self._due
            self._due[key] = report
        if not waits:
            pool = self._pools.setdefault(step.hook.id, ThreadPoolExecutor(_AT_ONCE, "hooks"))
            pool.submit(self._run, step, key, kind or "")

    def _path(self, id: str) -> Path | None:
        """Return the file of the report, which a queue on PostgreSQL does not have."""
        places = (self._queue / folder / f"{id}.report.json" for folder in _PLACES)
        return next(filter(Path.exists, places), None)

    def _run(self, step: Step, key: Key, kind: str) -> None:
        with self._lock:
            report = self._due.pop(key)
        with logs.about(id := report.id):
            try:
                if self._cut.is_set() or (self._closing and step.hook.id in self._hung):
                    raise Cancelled
                self._heard(step, report, kind)
            except Cancelled:
                _LOG.warning("the hook %s was ended, or does not end: %s untold", step.hook.id, id)
            except (OSError, Fault) as error:
                _LOG.warning("the hook %s did not hear of %s: %s", step.hook.id, id, error)
            except Exception:  # a thread of a pool would keep a defect to itself
                _LOG.exception("the hook %s did not run for %s", step.hook.id, id)

    def _heard(self, step: Step, report: Report, kind: str) -> None:
        id = report.id
        where = self._top if step.git else self._gitdir
        run = self._engine.tell(step, report, kind, self._path(id), where, self._cut)
        hung = self._engine.record_trouble(step.hook, run, id)
        (self._hung.add if hung else self._hung.discard)(step.hook.id)
        if run.exit != 0:
            end = "did not end in time" if run.exit is None else f"ended with {run.exit}"
            _LOG.warning("the hook %s %s for %s: %s", step.hook.id, end, id, run.output)
        elif run.output:
            _LOG.info("the hook %s for %s: %s", step.hook.id, id, run.output)

    def close(self) -> None:
        """Wait until all have run, but for those behind a hook that hangs."""
        self._closing = True
        for pool in self._pools.values():
            pool.shutdown()
