"""Asking one hook about one candidate, and what its end means for the batch; letting hooks know of
verdicts.

A hook runs in a slot with its work tree, and no more hooks are asked at a time than there are
processors.  Its end is a pass, a refusal with its reason, or other files.

Hooks are told of verdicts beside the work: what they do or fail to do changes nothing.  A verdict
is told of once it can be seen.  Whoever dies between the two has told nobody, and the report is
there all the same; so a hook that must not miss one looks at the queue itself.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from errno import ENODATA
from functools import cached_property
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock

from patchq.git.checkout import obstacle
from patchq.hooks import shipped, sight
from patchq.hooks.jail import (  # fmt: skip
    Cancelled,
    HookExit,
    Job,
    Objects,
    Slot,
    WarmTree,
    can_jail,
    no_jail,
    run,
    slot,
    stores,
)
from patchq.hooks.steps import MESSAGE, Step, Steps
from patchq.model.errors import DiskFault, Fault, HookFault
from patchq.model.report import HookPlan, Report, kind_of
from patchq.model.values import HookRun, Problem, State
from patchq.queue.spool import Shelf, digest, encode, report
from patchq.queue.troubles import Troubles
from patchq.report import logs, secrecy
from patchq.text.encoded import without_encoded
from patchq.text.quote import clip

_LOG = logging.getLogger("patchq")
_MOST_PASSES = 8192
"""Remembered passes, each a file without content.  A refusal is not remembered: it may come from
what is outside of the tree, and the next try shall find out."""


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class HookInput:
    """What hooks may know of a batch and its candidate, in plain values, ids in hex."""

    id: str
    target: str
    base: str
    parent: str
    parent_tree: str
    commit: str
    tree: str
    paths: tuple[str, ...]
    message: str
    plan: HookPlan
    lend: Callable[[], Objects] = dict
    """Gives the objects of the commit that are not written yet."""

    @cached_property
    def objects(self) -> Objects:
        return self.lend()

    @cached_property
    def plan_text(self) -> bytes:
        return json.dumps(self.plan).encode()


class Engine:
    """Runs hooks below the directory `root`; `store` has the real repository's objects, `git_hooks`
    its hooks, and what an entry names as `visible` is below `home`."""

    def __init__(self, root: Path, store: Path, git_hooks: Path, home: Path) -> None:
        self._root, self._store, self._home = root, store, home
        self._rooms = root / "rooms"  # for hooks that see no tree
        self._passes = Shelf(root / "passes", _MOST_PASSES, _MOST_PASSES // 2)
        self.troubles = Troubles(root.parent)
        self._free = BoundedSemaphore(processors())
        self._trying = Lock()
        self._jails: bool | None = None
        # Has git in a hook find the repository's other hooks, as `pre-applypatch` likes to.
        self._git_env = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.hooksPath",
            "GIT_CONFIG_VALUE_0": str(git_hooks),
        }

    def ask(self, step: Step, candidate: HookInput, stop: Event) -> Verdict:
        """What the hook says.  Raises `HookFault` if it cannot be started, `Cancelled` once `stop`
        is set."""
        if step.judge is not None:
            return judged(step, step.judge, candidate.plan)
        # What sees the plan sees a difference, and what is git's own sees it as HEAD's.
        against = candidate.parent_tree if step.stage == "pre-apply" or step.git else ""
        key = digest(candidate.tree, against, step.id, step.digest)
        if step.cache and self._passes.get(key) is not None:
            return Verdict(HookRun(step.id, step.stage, 0, 0.0, "passed before, on the same tree"))
        with self._free:
            if stop.is_set():
                raise Cancelled
            try:
                answer = self._run(step, candidate, stop)
            except OSError as error:
                raise DiskFault(f"cannot prepare for the hook {step.id}: {error}") from None
        self.see(step, answer.run, candidate.id)
        if step.cache and not (answer.problems or answer.fixed or answer.message):
            with suppress(OSError):
                self._passes.put(key, b"")
        return answer

    def see(self, step: Step, run: HookRun, id: str) -> bool:
        """Note a hook that does not do what it is for, or that it does again; whether it hung."""
        name, told = f"hook.{step.id}", step.stage.startswith("post-")
        if run.exit is None:
            how = f"did not end within {step.timeout:g} s"
            cure = "see what it waits for, or set its `timeout_seconds`"
        elif run.exit and told:
            said = run.output.strip().splitlines()
            how = f"ended with {run.exit}{': ' + said[-1] if said else ''}"
            cure = "see to what it says; it is not told of the same batch again"
        else:
            self.troubles.over(name)
            return False
        message = f"the hook {step.id} ({step.stage}) {how}, the last time for batch {id}"
        self.troubles.note(name, secrecy.without(message), f"{cure}; batches get their verdicts")
        return run.exit is None

    def _run(self, step: Step, candidate: HookInput, stop: Event) -> Verdict:
        sees = step.stage == "pre-commit"
        jailed = self._jailed()
        if not (jailed or step.unconfined):
            raise _exposed(step)
        head = candidate.parent if step.git else candidate.commit
        with slot(self._root if sees else self._rooms, candidate.tree) as own:
            warm = WarmTree(own.path, self._store)
            if sees:
                warm.show(candidate.tree, head, candidate.objects)
                message = warm.gitdir / MESSAGE
                message.unlink(missing_ok=True)
                if step.git:
                    message.write_text(candidate.message, encoding="utf-8")
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
                where=warm.tree if sees else own.room / "empty",
                room=own.room,
                lock=own.lock,
                timeout=step.timeout,
                jailed=jailed,
                sight=self._sight(step, own, sees) if jailed else (),
                tree=warm.tree if sees else None,
                stdin=b"" if step.git else candidate.plan_text,
                network=step.network or not jailed,
            )
            if sees and not jailed:
                warm.lend()
            try:
                with run(job, stop) as end:
                    return verdict(step, candidate.message, warm, end)
            finally:
                if sees and not jailed:
                    warm.restore(candidate.tree, head, candidate.objects)

    def _sight(self, step: Step, own: Slot, sees: bool) -> Sequence[str]:
        """What it sees.  Raises `HookFault` where its entry names what nobody may be shown."""
        visible = [sight.located(place, self._home) for place in step.visible]
        for place in visible:
            if why := sight.unfit(place, (self._store.parent, self._root.parent)):
                raise HookFault(
                    f"the hook {step.id} cannot be used: {place}, in its `visible`, {why}",
                    "name what the hook's programs need, and nothing else",
                )
        path = os.pathsep.join((step.env["PATH"], *step.parts))
        facts = [own.path / "files", *(stores(self._store) if sees else ())]
        return [*sight.seen(path, visible), *(f"+{fact}" for fact in facts)]

    def _jailed(self) -> bool:
        with self._trying:
            if self._jails is None:
                self._jails = can_jail(self._root)
                if not self._jails:
                    _LOG.warning(
                        "hooks cannot be jailed here, as %s: those that run may read and write "
                        "what patchq may, and use the network",
                        no_jail()[0],
                    )
            return self._jails

    def tell(
        self, step: Step, report: Report, kind: str, path: Path | None, where: Path, cut: Event
    ) -> HookRun:
        """Let a hook know of an event, whose report is at `path`, or is put into a file for it; it
        runs in the directory `where`, as a plain process; without a network if it is to have none.
        Raises `Cancelled` once `cut` is set."""
        with slot(self._rooms) as own:
            if path is None:
                path = own.room / f"{report['id']}.report.json"
                path.write_bytes(encode(report))
            env = _environment(
                step,
                own,
                dict.fromkeys(edit["path"] for edit in report["edits"]),
                BATCH=report["id"],
                TARGET=report["target"] or "",
                BASE=report["base"]["commit"] if report["base"] else "",
                COMMIT=report["commit"] or "",
                REPORT=str(path),
                STATE=report["state"],
                EVENT=kind,
            )
            job = Job(
                argv=step.argv,
                env=env,
                where=where,
                room=own.room,
                lock=own.lock,
                timeout=step.timeout,
                jailed=False,
                stdin=b"" if step.git else json.dumps(report).encode(),
                network=step.network or not self._jailed(),
            )
            with run(job, cut) as end:
                return as_run(step, end)


def _exposed(step: Step) -> HookFault:
    """That a hook which runs what batches hold would run where nothing keeps it from anything."""
    why, cure = no_jail()
    return HookFault(
        f"the hook {step.id} cannot be used: it runs what batches hold, and hooks cannot be jailed "
        f"here, as {why}",
        cure
        if step.git
        else f"{cure}; or let it read and print whatever this user can read, by "
        "`unconfined: true` in its entry",
    )


def _environment(step: Step, own: Slot, paths: Iterable[str], **facts: str) -> dict[str, str]:
    """What a hook finds in its environment: the `facts` as `PATCHQ_…`, the paths in a file."""
    names = own.path / "files"
    names.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
    return {
        "HOME": str(own.room / "home"),
        **step.env,
        **({"PATCHQ_FIXES": "1"} if step.fixes else {}),
        "PATCHQ_STAGE": step.stage,
        "PATCHQ_FILES": str(names),
        **{f"PATCHQ_{name}": fact for name, fact in facts.items()},
    }


MOST_SHOWN = 4000
"""Characters of a hook's output that a report shows, the last ones."""
_MOST_TOLD = 1000
_MOST_FILE = 64 * 1024 * 1024
_SECRET = "edit.secret:"

Fixed = Mapping[str, tuple[bytes, bool] | None]
"""What a hook made of files: content and whether executable, None where it removed one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a hook said; `problems` refuse the batch, `fixed` and `message` change it."""

    run: HookRun
    problems: tuple[Problem, ...] = ()
    fixed: Fixed = field(default_factory=dict)
    message: str | None = None


def as_run(step: Step, end: HookExit) -> HookRun:
    return HookRun(step.id, step.stage, end.code, end.seconds, _shown(end, MOST_SHOWN))


def _shown(end: HookExit, most: int) -> str:
    """The end of what a hook said, without encoded bytes: it may have printed what it read."""
    return _tail(without_encoded(end.output.strip()), most)


def verdict(step: Step, message: str, warm: WarmTree, end: HookExit) -> Verdict:
    """What the end of a hook that saw the commit with this message means.  Raises `HookFault` if it
    was not started at all."""
    run = as_run(step, end)
    if end.code in (126, 127):
        output = _shown(end, _MOST_TOLD)
        raise HookFault(
            f"the hook {step.id} cannot be started (exit {end.code}){output and f': {output}'}",
            "correct its `run`; `patchq config check` finds what cannot be found",
        )
    if end.code != 0:
        return Verdict(run, (_refusal(step, run),))
    if not step.fixes:
        return Verdict(run)
    if end.jail and obstacle(Path(end.root), str(warm.gitdir / MESSAGE).lstrip("/")):
        # What it put there would lead whoever follows the path to files of the machine.
        return Verdict(run, (_disliked(step, "moved its own work tree"),))
    if step.git:
        written = _content(Path(f"{end.root}{warm.gitdir}"), MESSAGE)
        text = written[0].decode("utf-8", "replace") if written else message
        return Verdict(run, message=text if text.strip() != message.strip() else None)
    try:
        tree = Path(f"{end.root}{warm.tree}")
        fixed = {path: _content(tree, path) for path in warm.changed(end.jail)}
    except ValueError as error:
        return Verdict(run, (_disliked(step, str(error)),))
    return Verdict(run, fixed=fixed)


def _disliked(step: Step, what: str) -> Problem:
    return Problem(
        "hook.refused",
        f"the hook {step.id} {what}, which no batch may",
        "nothing to correct in the response: have the hook looked after",
    )


def _content(there: Path, path: str) -> tuple[bytes, bool] | None:
    """What a hook left at a path; ValueError if that is nothing that can be committed."""
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
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_FILE:
            raise ValueError(f"made {path} something other than a file of a fair size")
        return file.read(_MOST_FILE), bool(status.st_mode & 0o100)


def _refusal(step: Step, run: HookRun) -> Problem:
    output = f"\n{_tail(run.output, _MOST_TOLD)}" if run.output else ""
    if run.exit is None:
        return Problem(
            "hook.timeout",
            f"the hook {step.id} ({step.stage}) did not end within {step.timeout:g} seconds and "
            f"was stopped{output}",
        )
    how = f"exit {run.exit}"
    if run.exit > 128 and run.exit - 128 in set(signal.Signals):
        how += f", ended by {signal.Signals(run.exit - 128).name}"
    return Problem(
        "hook.refused", f"the hook {step.id} ({step.stage}) refused the batch: {how}{output}"
    )


def _tail(output: str, most: int) -> str:
    return output if len(output) <= most else "…" + output[-most:]


def judged(step: Step, judge: shipped.Judge, plan: HookPlan) -> Verdict:
    """What a function says of a plan."""
    try:
        lines = judge(plan)
    except ValueError as error:
        raise HookFault(f"the hook {step.id} cannot be used: {error}") from None
    output = clip("\n".join(lines), MOST_SHOWN)
    run = HookRun(step.id, step.stage, 1 if lines else 0, 0.0, output)
    problems = [
        Problem("edit.secret", line.removeprefix(_SECRET).strip())
        for line in lines
        if line.startswith(_SECRET)
    ]
    if others := [line for line in lines if not line.startswith(_SECRET)]:
        message = f"the hook {step.id} ({step.stage}) refused the batch\n"
        problems.append(Problem("hook.refused", message + _tail("\n".join(others), _MOST_TOLD)))
    return Verdict(run, tuple(problems))


_AT_ONCE = 2
_MOST_KEPT = 1000
"""Characters of what a hook says that is told, which its report keeps."""
_PLACES = ("done", "rejected", "active")


class Notifier:
    """Runs the hooks that are told, each at most twice at once: one that hangs keeps neither the
    others nor the work waiting.  What waits is read from its report when its turn comes, where the
    queue has that in a file here."""

    def __init__(self, engine: Engine, queue: Path, where: Path, cut: Event) -> None:
        self._engine, self._queue, self._where, self._cut = engine, queue, where, cut
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
        kind, last = kind_of(report), before and (before["state"], before["commit"])
        changed = before is None or kind_of(before) != kind
        for step in steps.told:
            moved = step.in_step and last != (report["state"], report["commit"])
            if moved or (changed and not step.in_step and kind in step.hears):
                self._soon(step, report)

    def runs(self, most: int) -> list[tuple[str, HookRun]]:
        """What the hooks said and was not asked for yet, each with the batch that it was told
        of."""
        return [self._runs.popleft() for _ in range(min(most, len(self._runs)))]

    def _soon(self, step: Step, report: Report) -> None:
        paths = [edit["path"] for edit in report["edits"]]
        if paths and not step.git and not step.wants(paths):
            return
        if step.in_step:
            if (step.id, report["id"]) in self._due:
                self._keep(report, 0)
                return
            self._due.add((step.id, report["id"]))
        self._keep(report, 1)
        if step.id not in self._pools:
            self._pools[step.id] = ThreadPoolExecutor(_AT_ONCE, "told")
        state, kind = report["state"], kind_of(report) or ""
        self._pools[step.id].submit(self._run, step, report["id"], state, kind)

    def _path(self, id: str) -> Path | None:
        """Where the report stands by now, if it stands here."""
        places = [self._queue / folder / f"{id}.report.json" for folder in _PLACES]
        return next((path for path in places if path.exists()), None)

    def _keep(self, report: Report, more: int) -> None:
        """Keep a report that no file here has for those that wait, and so many `more`."""
        with self._lock:
            _, waiting = self._elsewhere.get(report["id"], (report, 0))
            if waiting + more and self._path(report["id"]) is None:
                self._elsewhere[report["id"]] = report, waiting + more

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
                told = {**told, "state": state}
                run = self._engine.tell(step, told, kind, path, self._where, self._cut)
                if run.output or run.exit != 0:
                    kept = replace(run, output=_tail(run.output, _MOST_KEPT))
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

    def close(self) -> None:
        """Wait until everything was told, but for what waits behind a hook that hangs."""
        self._closing = True
        for pool in self._pools.values():
            pool.shutdown()
        for step, number in self._untold.items():
            _LOG.warning("the hook %s was ended, or does not end: %d left untold", step, number)
        self._untold.clear()
