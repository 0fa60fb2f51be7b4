"""Second deliveries: the same bytes, or edits that find their quotes again in what they made.

The text of the edits alone cannot tell a second one from a first.  The history can: the edits, read
on the parent of a batch that landed lately, make the very files that this batch made.  It is asked
only where the text already has all that one of the edits writes, since what was delivered is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from patchq.core.model.ops import WHOLE, halves
from patchq.core.model.report import Delivery
from patchq.core.model.values import Edit, Tree
from patchq.core.plan import batch
from patchq.gate.pipeline import traces
from patchq.gate.pipeline.progress import EndedEarly, Resolved, Response, Target
from patchq.gate.pipeline.rebase import history
from patchq.gate.report import message

_MOST_COMMITS = 100
_MOST_PLANNED = 10
"""How far back a first delivery is looked for, and on how many of the batches that landed."""


def refuse_same_bytes(response: Response, target: Target) -> None:
    """End a response whose very bytes wait or have landed already."""
    world, sha256 = response.world, response.claim.source.sha256
    for id in () if response.choice.accepted else reversed(world.queue.by_source(sha256)):
        if id in (response.id, response.header.retries):
            continue
        report = world.queue.load(id) or traces.landed(world, id, sha256, target.branch, target.tip)
        if report is not None and report["target"] == target.branch:
            _refuse_standing(report, response, target)


def refuse_same_edits(response: Response, target: Target, resolved: Resolved) -> None:
    """End a response that has landed already in other words."""
    edits, choice = response.choice.among(resolved.parsed.edits), response.choice
    if resolved.base.how != "tip" or choice.accepted or not resolved.plan.changes:
        return
    if not _may_be_there(edits, resolved, response.world.repo.tree(resolved.base.commit)):
        return
    for report in _alike(response, target, resolved, edits):
        _refuse_standing(report, response, target)


def _refuse_standing(report: Delivery, response: Response, target: Target) -> None:
    """End a response whose first delivery stands; refuse it where that was changed since."""
    earlier = history.standing(report, response.world, target.tip)
    if earlier == "touched":
        touched = history.touched_since(report, response.world.repo, target.tip)
        raise EndedEarly("rejected", touched)
    if earlier != "gone":
        raise EndedEarly("duplicate", duplicate_of=report["id"])


def _may_be_there(edits: Sequence[Edit], resolved: Resolved, tree: Tree) -> bool:
    """Return true if the text has every line that one of the edits writes, wherever it stands."""
    texts = {change.path: change.before or b"" for change in resolved.plan.changes}
    for edit in edits:
        if isinstance(edit.op, WHOLE):
            continue
        new = halves(edit.op)[1].encode("utf-8", "surrogateescape")
        written = {line.strip() for line in new.split(b"\n")} - {b""}
        if edit.path not in texts:  # as it changes nothing, or the file has another name then
            texts[edit.path] = _text(tree, edit.path) or b""
        if written and all(line in texts[edit.path] for line in written):
            return True
    return False


def _alike(
    response: Response, target: Target, resolved: Resolved, edits: Sequence[Edit]
) -> Iterator[Delivery]:
    """Yield the batches that landed lately and whose parents these edits make the same files of."""
    world, repo = response.world, response.world.repo
    paths = {path for change in resolved.plan.changes for path in change.paths}
    tried = 0
    for commit in islice(repo.commits(target.tip), _MOST_COMMITS):
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
            if id in (response.id, response.header.retries):
                continue
            sha256 = source.removeprefix("sha256:")
            report = world.queue.load(id) or traces.landed(
                world, id, sha256, target.branch, target.tip
            )
            if report is None and traces.last_state(world, id) is None:
                report = _about_to_land(target.branch, id, sha256, commit.oid)
            if report is not None and report["target"] == target.branch:
                yield report


def _about_to_land(branch: str, id: str, sha256: str, commit: str) -> Delivery:
    """Return what the report of a batch will say that lands together with this one."""
    return {
        "id": id,
        "state": "applied",
        "commit": commit,
        "target": branch,
        "source": {"sha256": sha256},
        "base": None,
    }


def _text(tree: Tree, path: str) -> bytes | None:
    entry = tree.entry(path)
    return tree.read(path) if entry and entry.kind != "tree" else None
