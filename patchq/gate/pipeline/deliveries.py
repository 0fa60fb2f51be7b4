"""A second delivery in other words, of edits that find their quotes again in what they made.

The text alone cannot tell it from a first one.  The history can: the edits, read on the parent of a
batch that landed lately, make the very files that this batch made.  It is asked only where the text
already has all that one of the edits writes, since what was delivered is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from patchq.core.model.ops import WHOLE, halves
from patchq.core.model.report import Delivery
from patchq.core.model.values import Edit, Tree
from patchq.core.plan import batch
from patchq.gate.pipeline import traces
from patchq.gate.pipeline.progress import Decision, Planned
from patchq.gate.pipeline.rebase import history
from patchq.gate.report import message

_MOST_COMMITS = 100
_MOST_PLANNED = 10
"""How far back a first delivery is looked for, and on how many of the batches that landed."""


def recognise(planned: Planned) -> Planned | Decision:
    """The batch, unless it has landed already in other words: then it is a duplicate, or refused
    where what it wrote was changed since."""
    edits = planned.choice.among(planned.parsed.edits)
    if planned.base.how != "tip" or planned.choice.accepted or not planned.plan.changes:
        return planned
    if not _may_be_there(edits, planned):
        return planned
    for report in _alike(planned, edits):
        earlier = history.standing(report, planned.world, planned.tip)
        if earlier == "touched":
            return planned.refuse(history.touched_since(report, planned.world.repo, planned.tip))
        if earlier != "gone":
            return replace(planned.end("duplicate"), duplicate_of=report["id"])
    return planned


def _may_be_there(edits: Sequence[Edit], planned: Planned) -> bool:
    """Whether the text has every line that one of the edits writes, wherever they stand."""
    texts = {change.path: change.before or b"" for change in planned.plan.changes}
    for edit in edits:
        if isinstance(edit.op, WHOLE):
            continue
        new = halves(edit.op)[1].encode("utf-8", "surrogateescape")
        written = {line.strip() for line in new.split(b"\n")} - {b""}
        if edit.path not in texts:  # as it changes nothing, or the file has another name then
            texts[edit.path] = _text(planned.tree, edit.path) or b""
        if written and all(line in texts[edit.path] for line in written):
            return True
    return False


def _alike(planned: Planned, edits: Sequence[Edit]) -> Iterator[Delivery]:
    """The batches that landed lately and whose parents these edits make the same files of."""
    world, repo = planned.world, planned.world.repo
    paths = {path for change in planned.plan.changes for path in change.paths}
    tried = 0
    for commit in islice(repo.commits(planned.tip), _MOST_COMMITS):
        named = message.trailers(commit.message)
        parents = repo.parents(commit.oid)
        if "Patchq-Batch" not in named or len(parents) != 1 or not repo.resolve_commit(parents[0]):
            continue
        before, after = repo.tree(parents[0]), repo.tree(commit.oid)
        if all(before.entry(path) == after.entry(path) for path in paths):
            continue
        tried += 1
        if tried > _MOST_PLANNED:
            return
        plan = batch.plan(edits, before, world.rules, diagnosed=False)
        if not plan.changes or any(_text(after, c.path) != c.after for c in plan.changes):
            continue
        for id, source in zip(named["Patchq-Batch"], named.get("Patchq-Source", []), strict=False):
            if id in (planned.id, planned.header.retries):
                continue
            sha256 = source.removeprefix("sha256:")
            report = world.queue.load(id) or traces.landed(
                world, id, sha256, planned.target, planned.tip
            )
            if report is None and traces.last_state(world, id) is None:
                report = _about_to_land(planned, id, sha256, commit.oid)
            if report is not None and report["target"] == planned.target:
                yield report


def _about_to_land(planned: Planned, id: str, sha256: str, commit: str) -> Delivery:
    """What the report of a batch will say that lands together with this one."""
    return {
        "id": id,
        "state": "applied",
        "commit": commit,
        "target": planned.target,
        "source": {"sha256": sha256},
        "base": None,
    }


def _text(tree: Tree, path: str) -> bytes | None:
    entry = tree.entry(path)
    return tree.read(path) if entry and entry.kind != "tree" else None
