"""Decide on cases in this process, and judge what would land.

One repository holds the files of every case, each in a commit of its own, and `main` moves from one
to the next.  A decision ends before anything lands, so nothing is left of it but what is judged
here: the commit's tree, read by patchq itself.  What that may get wrong is what `bench.corpus` is
for.
"""

from __future__ import annotations

import difflib
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from bench.corpus.rewrites.cases import Case
from bench.corpus.rewrites.registry import BASE, Files, Outcome
from bench.git import WHO, data, fast_import, link_packs, new_repository, new_store, quoted
from patchq.core.model.values import Source
from patchq.gate.config.schema import Config
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session, Tips, compose
from patchq.gate.queue import Claim
from patchq.gate.queue.engine import StoreQueue

TARGET = "main"
IDLE = "idle"
"""The branch that is checked out: a target that is would cost a process of git for each case."""
MOST_LINES = 40
"""Of a difference that is kept."""
_COMMITTED = ("applied", "proposed")
State = frozenset[tuple[str, str]]
History = tuple[State, ...]
"""The files of a root commit, and of the one on top of it if there is one."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case.  `response` and `difference` (lines of one, from what was wanted to
    what would land) are kept of unexpected ones only: a run has many cases."""

    kind: str
    group: str
    form: str
    task: str
    allowed: tuple[Outcome, ...]
    outcome: Outcome
    why: str
    problems: tuple[str, ...]
    seconds: float
    response: str = ""
    difference: tuple[str, ...] = ()

    @property
    def expected(self) -> bool:
        return self.outcome in self.allowed

    @property
    def preserving(self) -> bool:
        """Whether it keeps the meaning of its edits."""
        return self.allowed == ("exact",)

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "expected": self.expected}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Result:
        """One that was recorded, and read again as JSON."""
        values = {field.name: record[field.name] for field in fields(cls)}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **lists})


class Trial:
    """A repository at `place`, to decide in on cases that its path is known to; what else it needs
    is put into `home`."""

    def __init__(self, place: Path, home: Path) -> None:
        self._home = home
        self._store = new_store(home / "store.git", home=home)
        self._git_dir = new_repository(place, self._store, {}, head=IDLE)
        self._commits: dict[History, str] = {}
        self._count = 0
        repo = Repository.open(place)
        self._session = compose(
            RepoContext(repo, StoreQueue(place / ".patchq"), place / ".patchq", Config(), TARGET)
        )

    def close(self) -> None:
        self._session.close()

    def decide_all(self, cases: Sequence[Case]) -> list[Result]:
        """Put cases before the pipeline, each on its own files."""
        histories: dict[History, list[Files]] = {}
        for case in cases:
            histories |= {_history(case): [case.before, case.tip], _base(case): [case.before]}
        new = {key: files for key, files in histories.items() if key not in self._commits}
        new = dict(sorted(new.items(), key=lambda item: len(item[0])))
        if new:
            first = len(self._commits) + 1
            numbers = {key: number for number, key in enumerate(new, first)}
            parents = [
                numbers.get(key[:1], self._commits.get(key[:1], "")) if len(key) > 1 else ""
                for key in new
            ]
            files = [states[len(key) - 1] for key, states in new.items()]
            stream = _stream(zip(files, parents, strict=True), first)
            marks = fast_import(self._store, stream, home=self._home)
            self._commits |= {key: marks[number] for key, number in numbers.items()}
            link_packs(self._store, self._git_dir)
        return [self._decide(case) for case in cases]

    def _decide(self, case: Case) -> Result:
        tip, base = (self._commits[key] for key in (_history(case), _base(case)))
        (self._git_dir / "refs/heads" / TARGET).write_text(tip + "\n")
        began = time.perf_counter()
        outcome: Outcome = "crashed"
        problems: tuple[str, ...] = ()
        landed: Files | None = None
        with self._session.repo.unwritten.tentative():
            try:
                decision = process(self._claim(case, base), self._session, Tips(self._session))
                landed = _landed(decision, self._session)
            except Exception:  # whatever it is, it is the outcome
                why = traceback.format_exc()
            else:
                outcome, why = _judged(case, decision, landed)
                problems = tuple(f"{p.code}: {p.message}"[:200] for p in decision.problems)
        seconds = time.perf_counter() - began
        result = Result(
            kind=case.kind.name,
            group=case.kind.group,
            form=case.brief.form.name,
            task=case.brief.task.name,
            allowed=tuple(sorted(case.allowed)),
            outcome=outcome,
            why=why,
            problems=problems,
            seconds=seconds,
        )
        if result.expected:
            return result
        lines = () if landed is None else tuple(islice(_difference(case.after, landed), MOST_LINES))
        return replace(result, response=case.rewrite.response, difference=lines)

    def _claim(self, case: Case, base: str) -> Claim:
        response = case.rewrite.response.replace(BASE, base).encode("utf-8", "surrogatepass")
        self._count += 1
        id = f"case-{self._count}"
        source = Source(f"{id}.md", sha256(response).hexdigest(), len(response))
        return Claim(str(self._count), source, response, id=id)


def _judged(case: Case, decision: Decision, landed: Files | None) -> tuple[Outcome, str]:
    if landed is None:
        if decision.state == "duplicate":
            return "duplicate", ""
        if crash := next((p for p in decision.problems if p.code == "fault.crashed"), None):
            return "crashed", crash.message
        known = decision.state == "rejected" and decision.problems
        return ("refused", "") if known else ("wrong", f"{decision.state} without a commit")
    if decision.target != TARGET:
        return "wrong", f"for the branch {decision.target}"
    outcome = case.outcome_of(landed, len(decision.edits))
    if outcome == "exact":
        return outcome, ""
    paths = case.after.keys() | landed.keys()
    differ = sorted(path for path in paths if case.after.get(path) != landed.get(path))
    return outcome, f"other content: {', '.join(differ)}" if differ else "it lands"


def _landed(decision: Decision, session: Session) -> Files | None:
    """All files of the commit that a decision would land."""
    if decision.state not in _COMMITTED or decision.commit is None:
        return None
    tree = session.repo.tree(decision.commit)
    return {path: tree.read(path).decode("utf-8", "surrogateescape") for path in tree.paths()}


def _difference(wanted: Files, landed: Files) -> Iterator[str]:
    for path in sorted(wanted.keys() | landed.keys()):
        old, new = wanted.get(path, "").splitlines(), landed.get(path, "").splitlines()
        names = f"{path}, wanted", f"{path}, landed"
        yield from difflib.unified_diff(old, new, *names, n=1, lineterm="")


def _base(case: Case) -> History:
    return (frozenset(case.before.items()),)


def _history(case: Case) -> History:
    base = _base(case)
    return base if case.tip == case.before else (*base, frozenset(case.tip.items()))


def _stream(commits: Iterable[tuple[Files, int | str]], first: int) -> Iterator[bytes]:
    """A commit for each, with its parent's mark or name, or no parent; its own mark is its place,
    counted from `first`."""
    for number, (files, parent) in enumerate(commits, first):
        yield b"commit refs/bench/%d\nmark :%d\ncommitter %b\n" % (number, number, WHO)
        yield data(b"before\n")
        if parent:
            name = f":{parent}" if isinstance(parent, int) else parent
            yield b"from %b\ndeleteall\n" % name.encode()
        for path, text in files.items():
            yield b"M 100644 inline %b\n" % quoted(path)
            yield data(text.encode("utf-8", "surrogateescape"))
        yield b"\n"
