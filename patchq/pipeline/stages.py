"""The stages of the pipeline, one function each; `pipeline.process` tells their order.

Each fills in its part of the draft, or raises `Refusal` with what the report will say, or `Settled`
when the verdict is known before the end.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from fnmatch import fnmatchcase
from time import perf_counter

from patchq import formats
from patchq.formats.envelope.opening import open_response
from patchq.git.identity import Identity, parse_identity
from patchq.model.names import nearest
from patchq.model.ops import Anchored
from patchq.model.report import Delivery
from patchq.model.values import Edit, Envelope, Parsed, Plan, Problem, Tree
from patchq.pipeline import base, correct, dependencies, traces
from patchq.pipeline.draft import Draft, Refusal, Settled
from patchq.pipeline.rebase import history
from patchq.pipeline.world import Tips
from patchq.plan import batch, selection, syntax
from patchq.report import logs, message, secrecy
from patchq.text import unified
from patchq.text.quote import HIDDEN

_LOG = logging.getLogger("patchq")


def open_envelope(draft: Draft) -> Envelope:
    """The header and the text; gives the draft its id, which even an unreadable response gets."""
    began = perf_counter()
    claim = draft.claim
    opened = (claim.problem,) if claim.problem else open_response(claim.data)
    if isinstance(opened, Envelope):
        draft.header = opened.header
        if draft.choice.retries:
            draft.header = replace(opened.header, retries=draft.choice.retries)
    draft.id = claim.id or draft.world.queue.reserve(claim, draft.wanted_id())
    logs.turn_to(draft.id)
    draft.timed("open_ms", began)
    if secrets := secrecy.given(draft.header, draft.stem):
        raise Refusal(*secrets)
    if draft.generation.problems:
        raise Refusal(*draft.generation.problems)
    if not isinstance(opened, Envelope):
        raise Refusal(*opened)
    return opened


def choose_target(draft: Draft, tips: Tips) -> None:
    """The branch that the batch is for, and its tip."""
    world, wanted = draft.world, draft.header.target
    default = draft.choice.target or world.target
    allowed = [default, *world.config.targets]
    target = draft.choice.target or wanted or default
    if not any(target == name or fnmatchcase(target, name) for name in allowed):
        likely = nearest(target, allowed)
        raise Refusal(
            Problem(
                "frontmatter.target",
                f"the branch {target!r} is not one that responses may name; allowed: "
                + ", ".join(allowed),
                f"did you mean {likely}?" if likely else "leave `target` out",
            )
        )
    draft.target = target
    draft.parent = tips.of(target)
    if draft.parent is None:
        raise Refusal(
            Problem(
                "frontmatter.target",
                f"there is no branch {target!r} in this repository",
                "name a branch that exists, or leave `target` out",
            )
        )


def recognise(draft: Draft) -> None:
    """Whether the same bytes wait or have landed already; then the batch is a duplicate."""
    if draft.choice.accepted:
        return
    for id in reversed(draft.world.queue.by_source(draft.claim.source.sha256)):
        if id in (draft.id, draft.header.retries):
            continue
        report = draft.world.queue.load(id) or _remembered(draft, id)
        if report is None or report["target"] != draft.target:
            continue
        earlier = history.standing(report, draft.world.repo, draft.parent or "")
        if earlier == "gone":
            continue
        if earlier == "touched":
            raise Refusal(history.touched_since(report, draft.world.repo, draft.parent or ""))
        draft.duplicate_of = id
        draft.state = "duplicate"
        raise Settled


def _remembered(draft: Draft, id: str) -> Delivery | None:
    """What git says of a batch whose report is gone."""
    source = draft.claim.source.sha256
    return traces.landed(draft.world, id, source, draft.target, draft.parent or "")


def await_dependencies(draft: Draft) -> None:
    """Hold the batch until those that it depends on have landed; refuse it if one never will."""
    waits = dependencies.check(draft)
    if waits is None:
        return
    if waits.severity == "error":
        raise Refusal(waits)
    draft.problems.append(waits)
    draft.state = "held"
    raise Settled


def parse(draft: Draft, envelope: Envelope, tree: Tree) -> Parsed:
    """The edits of the text; lines are counted from the response's first."""
    began = perf_counter()

    def known(path: str) -> bool:
        entry = tree.entry(path) if path and "\0" not in path else None
        return entry is not None and entry.kind != "tree"

    parsed = formats.parse(envelope.text, known, draft.header.file, envelope.first_line)
    draft.timed("parse_ms", began)
    if any(problem.severity == "error" for problem in parsed.problems):
        raise Refusal(*parsed.problems)
    if draft.generation.candidates:
        parsed = replace(parsed, edits=tuple(_offered(draft, edit) for edit in parsed.edits))
    draft.problems += parsed.problems
    draft.summary, draft.author = parsed.summary, parsed.author
    if not parsed.edits:
        raise Refusal(
            Problem(
                "response.no_edits",
                "the response holds no edit",
                "send every change as a SEARCH/REPLACE block",
            )
        )
    limits = draft.world.config.limits
    for count, most, what in (
        (len(parsed.edits), limits.edits, "edits"),
        (len({edit.path for edit in parsed.edits}), limits.files, "files"),
    ):
        if count > most:
            raise Refusal(
                Problem(
                    "response.too_large",
                    f"the response holds {count} {what}, more than `limits.{what}` ({most})",
                    "send the changes in several responses",
                )
            )
    return parsed


def _offered(draft: Draft, edit: Edit) -> Edit:
    """The edit with the anchors that its prompt offered, whatever it says of them itself."""
    listed = draft.generation.candidates.get(edit.path)
    if listed is None or not isinstance(edit.op, Anchored):
        return edit
    return replace(edit, op=replace(edit.op, candidates=listed))


def resolve(draft: Draft, parsed: Parsed, tree: Tree) -> tuple[Parsed, Plan]:
    """Every edit's place on its base, and the files' new bytes; with the edits as they were
    corrected for that."""
    began = perf_counter()
    assert draft.base is not None
    declared = draft.base.how == "declared"
    choice, taken = draft.choice, draft.choice.of(parsed.edits)
    plan = batch.plan(taken, tree, draft.world.rules, declared=declared)
    if plan.refused:
        plan = base.infer(draft, taken, plan) or plan
    parsed, plan = correct.run(draft, parsed, plan)
    draft.edits = selection.with_left_out(plan.edits, parsed.edits, choice.edits, choice.left)
    draft.timed("resolve_ms", began)
    if plan.refused:
        raise Refusal(*plan.problems)
    draft.problems += plan.problems
    if not declared:
        plan = replace(plan, blind=(*plan.blind, *base.lost(draft, parsed.edits, plan)))
    return parsed, plan


def check_results(draft: Draft, plan: Plan) -> None:
    """Whether there is anything to do, and whether every file still makes sense to its language."""
    draft.paths = tuple(
        path for c in plan.changes for path in (c.renamed_from, c.path) if path is not None
    )
    _check_sizes(draft, plan)
    draft.diff = unified.unified(plan.changes)
    if not plan.changes:
        draft.state = "duplicate"
        raise Settled
    if secrets := [*secrecy.added_paths(plan.changes), *secrecy.added(draft.diff)]:
        raise Refusal(*secrets)
    began = perf_counter()
    validate, world = draft.world.config.validate_, draft.world
    if not validate.syntax:
        return
    wrong = [
        problem
        for change in plan.changes
        if not world.unparsed(change.path) and (problem := syntax.check(change))
    ]
    draft.timed("syntax_ms", began)
    if wrong:
        raise Refusal(*wrong)


def _check_sizes(draft: Draft, plan: Plan) -> None:
    most = draft.world.config.limits.file_bytes
    for change in plan.changes:
        if change.after is not None and len(change.after) > most:
            raise Refusal(
                Problem(
                    "response.too_large",
                    f"{change.path} would have {len(change.after)} bytes, more than "
                    f"`limits.file_bytes` ({most})",
                    "put less into one file",
                    path=change.path,
                )
            )


def commit(draft: Draft, plan: Plan, prose: str) -> None:
    """The candidate commit, on the target's tip; not reachable from anywhere yet."""
    began = perf_counter()
    world = draft.world
    assert draft.base is not None
    assert draft.parent is not None
    text = message.compose(
        header=draft.header,
        edits=draft.edits,
        changes=plan.changes,
        prose=prose if world.config.commit.prose else "",
        id=draft.id,
        source=draft.claim.source,
        base=draft.base.commit,
        summary=draft.summary,
        corrections=draft.corrections,
    )
    draft.subject = message.subject(text)
    now = world.identity()
    # A clock that was set back makes no commit that is older than its parent.
    committer = replace(now, when=max(now.when, world.repo.time(draft.parent)))
    author = _author(draft, committer)
    named = secrecy.said(f"{author.name} {author.email}", "the author")
    if secrets := [*secrecy.said(text, "the commit message"), *named]:
        raise Refusal(*secrets)
    if draft.choice.dry_run:
        return
    draft.commit, draft.tree = world.repo.write_commit(
        draft.parent, plan.changes, text, author, committer
    )
    draft.timed("commit_ms", began)


def _author(draft: Draft, committer: Identity) -> Identity:
    config = draft.world.config.commit
    named = draft.header.author or draft.author if config.author_from_response else None
    author = parse_identity(HIDDEN.sub("", named) if named else config.author or "")
    if author is None:
        return committer
    return replace(author, when=committer.when, offset=committer.offset)


def crashed(draft: Draft, error: Exception) -> None:
    """A defect of patchq's own: the response is refused, so that it is neither lost nor retried
    for ever, and the log has the traceback."""
    _LOG.error("%s: %s", draft.id or draft.claim.source.name, error, exc_info=error)
    draft.id = draft.id or draft.claim.id or draft.world.queue.reserve(draft.claim, "response")
    draft.state = "rejected"
    draft.problems.append(
        Problem(
            "fault.crashed",
            f"patchq failed on this response ({type(error).__name__}); nothing was applied",
            "send the changes in another form or in smaller parts, and report the defect with the "
            "log's traceback",
        )
    )
