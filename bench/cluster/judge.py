"""Judge a run from outside: what the remote's history says against what the reports say.

It knows from the sender what each response was to come to, from the remote what landed, by the
trailers of its commits, and from the feeder's queue what was told; patchq's own code has no part
in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from bench.cluster.fleet import Fleet, Sent

_TRAILER = "%(trailers:key=Patchq-{},valueonly,separator=%x20)"
_FORMAT = f"%x1e%H%x1f{_TRAILER.format('Batch')}%x1f{_TRAILER.format('Source')}%x1f"


Kind = Literal["lost", "twice", "wrong"]


@dataclass(frozen=True, slots=True)
class Violation:
    """Something is gone, is there twice, or is not as it is told; the batches that it is of."""

    kind: Kind
    what: str
    of: Sequence[str]

    def __str__(self) -> str:
        return f"{self.kind}: {', '.join(self.of)}: {self.what}"


def judge(fleet: Fleet, sent: Sequence[Sent]) -> list[Violation]:
    """What is not as it must be."""
    landed = _Landed(fleet)
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for feeder in fleet.feeders:
        for id, reports in fleet.reports(feeder).items():
            told[id] += reports
    wrong = [
        Violation("wrong", "nobody sent it, and there is a report", [id])
        for id in told.keys() - {s.id for s in sent}
    ]
    for one in sent:
        reports = told.get(one.id, [])
        if len(reports) != 1:
            kind: Kind = "twice" if reports else "lost"
            wrong.append(Violation(kind, f"{len(reports)} reports", [one.id]))
        else:
            wrong += _report(one, reports[0], landed)
    wrong += landed.objections(sent)
    wrong += same_bytes(sent, told)
    wrong += _left_behind(fleet, sent)
    return wrong


class _Landed:
    """What is in the history of each branch beyond the start: (commit, batch, source, paths)."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.commits: dict[str, list[tuple[str, str, str, list[str]]]] = {}
        for branch in fleet.branches:
            words = ("log", "--reverse", "--name-only", f"--format={_FORMAT}")
            log = fleet.git(fleet.hub, *words, f"{fleet.start_oid}..refs/heads/{branch}")
            self.commits[branch] = []
            for entry in log.split("\x1e")[1:]:
                commit, batch, source, paths = entry.split("\x1f")
                self.commits[branch].append((commit, batch, source, paths.split()))

    def of(self, id: str) -> list[tuple[str, str, str]]:
        """Branch, commit and source of each landing of the batch."""
        return [
            (branch, commit, source)
            for branch, commits in self.commits.items()
            for commit, batch, source, _ in commits
            if batch == id
        ]

    def objections(self, sent: Sequence[Sent]) -> list[Violation]:
        """Commits of nobody, and files that are not what their responses say."""
        wrong = []
        known = {one.id: one for one in sent}
        for branch, commits in self.commits.items():
            for commit, batch, _, paths in commits:
                one = known.get(batch)
                if one is None:
                    what = f"nobody sent it, and {commit} on {branch} is of it"
                elif paths != [one.path]:
                    what = f"its commit {commit} changes {paths}"
                elif self._text(branch, one.path) != one.applied:
                    what = f"{branch} has something else in {one.path}"
                else:
                    continue
                wrong.append(Violation("wrong", what, [batch]))
        return wrong

    def _text(self, branch: str, path: str) -> str:
        return self._fleet.git(self._fleet.hub, "cat-file", "blob", f"refs/heads/{branch}:{path}")


def _report(one: Sent, report: dict[str, Any], landed: _Landed) -> list[Violation]:
    """What a report says against what is there."""
    state, there = report["state"], landed.of(one.id)
    kind: Kind = "wrong"
    what = ""
    if len(there) > 1:
        kind, what = "twice", f"landed {len(there)} times: {there}"
    elif state == "applied":
        wanted = (one.branch, report["commit"], one.source)
        if [(b, c, s.removeprefix("sha256:")) for b, c, s in there] != [wanted]:
            kind = "wrong" if there else "lost"
            what = f"told to be applied as {wanted[:2]}, and the remote has {there}"
    elif there:
        what = f"told to be {state}, and the remote has {there}"
    if not what and one.applied is None and state != "rejected":
        what = f"{state}, and was to be rejected"
    elif not what and one.applied is not None and state not in ("applied", "duplicate"):
        what = f"{state}, and was to be applied: {report['problems']}"
    return [Violation(kind, what, [one.id])] if what else []


def same_bytes(sent: Sequence[Sent], told: dict[str, list[dict[str, Any]]]) -> list[Violation]:
    """Of good responses with the same bytes one is applied, and the others lead to it."""
    groups = defaultdict(list)
    for one in sent:
        if one.applied is not None and len(told.get(one.id, [])) == 1:
            groups[one.source].append(told[one.id][0])
    wrong = []
    for reports in groups.values():
        ids = [report["id"] for report in reports]
        applied = [report["id"] for report in reports if report["state"] == "applied"]
        if len(applied) != 1:
            kind: Kind = "twice" if applied else "lost"
            wrong.append(Violation(kind, f"the same bytes were applied {len(applied)} times", ids))
            continue
        firsts = {report["id"]: report["duplicate_of"] for report in reports}
        if any(_first(id, firsts) != applied[0] for id in ids):
            what = f"of the same bytes {applied} was applied, and was told of: {firsts}"
            wrong.append(Violation("wrong", what, ids))
    return wrong


def _first(id: str, firsts: dict[str, str | None]) -> str:
    """The batch to which a duplicate leads, perhaps through one that was held when this one came,
    and turned out to be a duplicate itself."""
    seen = {id}
    while (other := firsts.get(id)) is not None and other not in seen:
        id = other
        seen.add(id)
    return id


def _left_behind(fleet: Fleet, sent: Sequence[Sent]) -> list[Violation]:
    """Responses that are not beside their report once, with the bytes that were sent."""
    wrong, found = [], Counter[tuple[str, str]]()
    for feeder in fleet.feeders:
        queue = fleet.root / feeder / ".patchq"
        left = [path.stem for path in (queue / "inbox").glob("*.md")]
        if left:
            wrong.append(Violation("lost", "still in the inbox", left))
        for path in (path for place in ("done", "rejected") for path in _kept(queue / place)):
            found[path.stem, sha256(path.read_bytes()).hexdigest()] += 1
    for one in sent:
        if (times := found[one.id, one.source]) != 1:
            kind: Kind = "twice" if times else "lost"
            wrong.append(Violation(kind, f"its response is there {times} times", [one.id]))
    return wrong


def _kept(place: Any) -> list[Any]:
    return [path for path in place.glob("*.md") if not path.name.endswith(".report.md")]
