"""A commit's tree held in a dict, and batches planned on it, for tests that need no repository."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from patchq.core.model.listing import Listing
from patchq.core.model.ops import Op, Replace
from patchq.core.model.values import Edit, Entry, EntryKind, Plan
from patchq.core.plan import batch as apply
from patchq.core.plan.targets import PlanRules
from patchq.core.resolve.levels import LEVELS

RULES = PlanRules(levels=LEVELS, denied=lambda path: None, file_bytes=1 << 20)
PATH = "f.txt"


class DictTree:
    """Files by path; `others` are paths that hold something else than a file."""

    def __init__(
        self,
        files: Mapping[str, bytes | str],
        others: Mapping[str, EntryKind] | None = None,
        filters: Mapping[str, str] | None = None,
        executable: Collection[str] = (),
    ) -> None:
        self.files = {p: d.encode() if isinstance(d, str) else d for p, d in files.items()}
        self.others = dict(others or {})
        self.filters = dict(filters or {})
        self.executable = executable

    def entry(self, path: str) -> Entry | None:
        if path in self.files:
            return Entry("file", "0" * 40, path in self.executable)
        if path in self.others:
            return Entry(self.others[path], "0" * 40)
        return Entry("tree", "0" * 40) if self.names(path) else None

    def read(self, path: str) -> bytes:
        return self.files[path]

    def names(self, directory: str) -> tuple[str, ...]:
        prefix = f"{directory}/" if directory else ""
        below = [p[len(prefix) :] for p in (*self.files, *self.others) if p.startswith(prefix)]
        return tuple(dict.fromkeys(p.split("/")[0] for p in below))

    def paths(self) -> Iterator[str]:
        return iter(self.files)

    def listing(self) -> Listing:
        return Listing.of(self.paths())

    def filtered(self, path: str) -> str | None:
        return self.filters.get(path)


def edits(*ops: Op | tuple[str, str] | tuple[str, Op]) -> list[Edit]:
    """Edits in their order; a pair is the two halves of a `Replace` of `PATH`, or a path and what
    is done there."""
    made = []
    for number, op in enumerate(ops, 1):
        path = PATH
        if isinstance(op, tuple):
            path, op = (PATH, Replace(*op)) if isinstance(op[1], str) else op
        assert isinstance(op, Op)
        made.append(Edit(str(number), "search_replace", (number, number), path, op))
    return made


def planned(
    files: Mapping[str, bytes | str] | bytes | str, batch: Sequence[Edit], rules: PlanRules = RULES
) -> Plan:
    """The plan of a batch on these files; bytes or text are the file at `PATH`."""
    tree = {PATH: files} if isinstance(files, bytes | str) else files
    return apply.plan(batch, DictTree(tree), rules)


def written(data: bytes | str, *ops: tuple[str, str], rules: PlanRules = RULES) -> bytes | None:
    """What edits make of the file at `PATH`; None if they are refused."""
    plan = planned(data, edits(*ops), rules)
    if plan.refused:
        return None
    before = data.encode() if isinstance(data, str) else data
    return next((c.after for c in plan.changes if c.path == PATH), before)


def told(plan: Plan) -> list[str]:
    """The codes of what is wrong."""
    return [problem.code for problem in plan.problems]


def edit(op: Op, id: str = "1", format: str = "edit_calls", path: str = PATH) -> Edit:
    return Edit(id, format, (1, 1), path, op)


def batch(*ops: Op, path: str = PATH) -> list[Edit]:
    return [edit(op, str(number), path=path) for number, op in enumerate(ops, 1)]


def result(data: bytes | str, *ops: Op, path: str = PATH) -> str:
    """The file after the edits; the refusal's code, or `already`, or `same`."""
    done = planned({path: data}, batch(*ops, path=path))
    if done.refused:
        return next(p.code for p in done.problems if p.severity == "error")
    if {outcome.state for outcome in done.edits} == {"already_applied"} and not done.changes:
        return "already"
    after = next((change.after for change in done.changes), None)
    return "same" if after is None else after.decode("utf-8", "surrogateescape")
