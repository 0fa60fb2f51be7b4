"""Crash states: which there are, how each is called, and what happens in one.

auto/kill/rename:3              killed at the third rename
auto/kill/rename:3,write:2      and the next start at its second write
review/error/syncfs:1/EIO       the first syncfs fails
review/error/write:4/ENOSPC+    the disk is full from the fourth write on
accept/power/xfs/log/link:2     the power is cut at the second link, xfs with its log flushed
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.crash import aftermath, children, power, strace
from bench.crash.aftermath import GitFailed
from bench.crash.cases import CASES, Case
from bench.crash.strace import ERRORS, Point

KINDS = ("kill", "errors", "power")
END = "end"
"""In place of a point: the run comes to its end."""
Points = Mapping[str, Sequence[Point]]
"""The points of each case."""
_SIGKILL = -9
_ORDERLY = (0, 1, 3)
_KEPT_OUTPUT = 1500


@dataclass(frozen=True, slots=True)
class State:
    """One state; `points` are those of the first start, the second, …, `how` the error's name or
    what is flushed, `system` the file system."""

    case: str
    kind: str
    points: tuple[str, ...]
    how: str = ""
    system: str = "plain"

    def __str__(self) -> str:
        points = ",".join(self.points)
        if self.kind == "error":
            return f"{self.case}/error/{points}/{self.how}"
        if self.kind == "power":
            return f"{self.case}/power/{self.system}/{self.how}/{points}"
        return f"{self.case}/{self.kind}/{points}"


def parse(name: str) -> State:
    """The state of this name; raises ValueError for one that is none."""
    case, kind, *rest = name.split("/")
    if case not in CASES:
        raise ValueError(f"there is no case {case!r}")
    match kind, rest:
        case "kill", [points]:
            return State(case, kind, tuple(points.split(",")))
        case "error", [points, how]:
            return State(case, kind, (points,), how)
        case "power", [system, how, points] if system in power.SYSTEMS and how in power.FLUSHES:
            return State(case, kind, tuple(points.split(",")), how, system)
    raise ValueError(f"{name!r} is not the name of a state")


def all_states(points: Points, systems: Sequence[str], rng: random.Random) -> Iterator[State]:
    """All states of one crash, and as many of two and of three as there are points."""
    for case, all in points.items():
        changes = [str(point) for point in all if point.changes]
        rows: list[tuple[str, ...]] = [(point,) for point in changes]
        rows += [(point, rng.choice(changes)) for point in changes]
        rows += [(rng.choice(changes), rng.choice(changes), rng.choice(changes)) for _ in changes]
        yield from (State(case, "kill", row) for row in rows)
        for point in all:
            for code, calls in ERRORS.items():
                if point.call in calls and (point.changes or code == "EMFILE"):
                    yield State(case, "error", (str(point),), code)
                    if code == "ENOSPC":
                        yield State(case, "error", (str(point),), code + "+")
        for system in systems:
            for flush in power.FLUSHES:
                ends = [*changes, END]
                yield from (State(case, "power", (row,), flush, system) for row in ends)
                twice = [(point, rng.choice(changes)) for point in changes[::4]]
                yield from (State(case, "power", row, flush, system) for row in twice)


def _lasting(state: State) -> bool:
    """Whether the error goes on, or is one of removing: then something has to stay behind."""
    return state.how.endswith("+") or state.points[0].startswith(("unlink", "rmdir"))


@dataclass(slots=True)
class Outcome:
    """What came of a state: the sentences that accuse, whether its points were met at all, and
    whether the process that met an error ended in a traceback."""

    state: State
    violations: list[str] = field(default_factory=list)
    met: bool = True
    untidy: bool = False
    said: str = ""


@dataclass(slots=True)
class Room:
    """A directory in which one process after another crashes."""

    path: Path
    without: str = ""
    """The safeguard that is switched off in whatever crashes and recovers."""
    _ready: dict[tuple[str, str], power.Disk | None] = field(default_factory=dict)

    def repo(self, case: str, system: str = "plain") -> Path:
        return self.path / system / case / "disk" / "repo"

    @property
    def said(self) -> Path:
        return self.path / "said.txt"

    def record(self, case: Case) -> list[Point]:
        """The points of the case, met in a run that nothing disturbs."""
        self._fresh(case.name, "plain")
        repo, log = self.repo(case.name), self.path / "trace"
        child = children.fork(case.words(repo), self.said, few=case.few)
        with strace.tracing(child.pid, log):
            child.begin()
            code = child.wait()
        if code not in (0, 1):
            raise RuntimeError(f"the undisturbed run gave {code}: {self.said.read_text()}")
        return strace.points(log, repo)

    def live_through(self, state: State) -> Outcome:
        """Crash, recover, look."""
        outcome, case = Outcome(state), CASES[state.case]
        self.said.unlink(missing_ok=True)
        disk = self._fresh(state.case, state.system)
        repo = self.repo(state.case, state.system)
        try:
            for number, point in enumerate(state.points):
                words = case.words(repo) if number == 0 else ["-C", str(repo), "run"]
                code = self._crash(words, state, point)
                if state.kind == "error" and code in _ORDERLY and not _lasting(state):
                    outcome.violations += aftermath.left_behind(repo)
                met = code == _SIGKILL or state.kind == "error" or point == END
                outcome.met = outcome.met and (met or number > 0)
                if disk is not None:
                    disk.cut(state.how)
                    disk.unmount()
                    disk.mount()
            outcome.untidy = self.said.exists() and "fault.crashed" in self.said.read_text()
            outcome.violations += self._recover(case, repo)
        except (GitFailed, power.NoPower, OSError, ValueError) as error:
            outcome.violations.append(f"{type(error).__name__}: {error}")
        finally:
            if disk is not None:
                disk.unmount()
        if self.said.exists():
            outcome.said = self.said.read_text(errors="replace")[-_KEPT_OUTPUT:]
        return outcome

    def _crash(self, words: Sequence[str], state: State, point: str) -> int | None:
        few = CASES[state.case].few
        child = children.fork(words, self.said, self.without, few=few)
        injections = []
        if point != END:
            call, number = point.split(":")
            once = number + ("+" if state.how.endswith("+") else "")
            code = state.how.rstrip("+")
            what = f"error={code}" if state.kind == "error" else "signal=KILL"
            injections.append(f"{call}:{what}:when={once}")
        with strace.tracing(child.pid, self.path / "trace", injections):
            child.begin()
            return child.wait()

    def _recover(self, case: Case, repo: Path) -> Iterator[str]:
        code = children.run(["-C", str(repo), "run"], self.said, self.without, few=case.few)
        if code not in (0, 1):
            yield f"the next start gave {code}"
        if case.goes_on(repo):
            code = children.run(case.words(repo), self.said, self.without, few=case.few)
            if code != 0:
                yield f"the person's second try gave {code}"
        yield from case.violations(repo)

    def _fresh(self, case: str, system: str) -> power.Disk | None:
        """Everything ready for the crash; the disk, mounted, if it is one."""
        at = self.repo(case, system).parent
        if (case, system) not in self._ready:
            self._ready[case, system] = self._prepare(CASES[case], system, at)
        ready = self._ready[case, system]
        if ready is None:
            shutil.rmtree(at, ignore_errors=True)
            subprocess.run(["cp", "-a", str(at.with_name("ready")), str(at)], check=True)
            return None
        disk = ready.copy_to(at.with_name("image"))
        disk.mount()
        return disk

    def _prepare(self, case: Case, system: str, at: Path) -> power.Disk | None:
        at.mkdir(parents=True)
        if system == "plain":
            case.prepare(at / "repo", self.said)
            at.rename(at.with_name("ready"))
            return None
        disk = power.Disk(system, at.with_name("image.ready"), at)
        disk.make()
        disk.mount()
        try:
            case.prepare(at / "repo", self.said)
        finally:
            disk.unmount()
        return disk
