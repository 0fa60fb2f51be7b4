"""The stages of the pipeline, one function each; `pipeline.process` tells their order.

Each takes what the one before it gives, and gives a value that knows more, or a `Decision` when the
verdict is known before the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from time import perf_counter
from typing import Literal

from patchq.core import formats
from patchq.core.formats import account
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.errors import CannotSign, Fault
from patchq.core.model.names import nearest
from patchq.core.model.ops import Anchored, halves
from patchq.core.model.values import (
    Correction,
    Edit,
    EditOutcome,
    Envelope,
    FileChange,
    Header,
    Plan,
    Problem,
)
from patchq.core.plan import batch, guards, selection
from patchq.core.resolve.readings import unescape
from patchq.core.text.quote import HIDDEN
from patchq.gate.git.located import WorkTrees
from patchq.gate.git.objects import Identity, parse_identity
from patchq.gate.pipeline import base, gate, mode, traces
from patchq.gate.pipeline.known import known_paths
from patchq.gate.pipeline.progress import (  # fmt: skip
    Aimed,
    Based,
    CandidateCommit,
    Checked,
    Decision,
    Incoming,
    Planned,
    Read,
    Response,
    timed,
)
from patchq.gate.pipeline.rebase import history
from patchq.gate.pipeline.world import World
from patchq.gate.report import logs, message, secrecy


def open_envelope(incoming: Incoming) -> Response | Decision:
    """The header and the text, and the id, which even an unreadable response gets.  A claim with a
    problem is refused for it, and held for one that is a warning."""
    began = perf_counter()
    claim, retries, stem = incoming.claim, incoming.choice.retries, incoming.stem
    held = claim.problem is not None and claim.problem.severity == "warning"
    opened = (claim.problem,) if claim.problem and not held else open_response(claim.data)
    envelope, unreadable = (
        (opened, ()) if isinstance(opened, Envelope) else (Envelope(Header(), ""), opened)
    )
    again = bool(retries and not unreadable)
    header = replace(envelope.header, retries=retries) if again else envelope.header
    id = claim.id or incoming.world.queue.reserve(claim, secrecy.batch_id(header.id or stem))
    logs.turn_to(id)
    known = incoming.but(
        timings=timed(incoming.timings, "open_ms", began), subject=message.headline(header)
    )
    response = Response(**known, id=id, header=header, envelope=envelope)
    problems = secrecy.in_header(header, stem) or incoming.generation.problems or unreadable
    if claim.problem and held and not problems:
        return response.end("held", claim.problem)
    return response.refuse(*problems) if problems else response.warned(*_unfollowed(response))


def _unfollowed(response: Response) -> Iterator[Problem]:
    """What the front matter says, is understood, and has no effect."""
    said, world = response.envelope.header, response.world
    if said.author and not world.config.commit.author_from_response:
        yield Problem(
            "frontmatter.value",
            "the front matter's `author` is not used: `commit.author_from_response` is not set",
            "leave `author` out",
            severity="warning",
        )
    retried = said.retries
    if retried and not traces.is_known(world, retried):
        yield Problem(
            "frontmatter.value",
            f"the front matter's `retries` has no effect: no batch {retried!r} is known",
            "give the id that the refused response's report has",
            severity="warning",
        )


def choose_target(response: Response) -> Aimed | Decision:
    """The branch that the batch is for, and its tip."""
    world, choice = response.world, response.choice
    default = choice.target or world.target
    target = choice.target or response.header.target or default
    if problem := not_a_target(target, [default, *world.config.targets]):
        return response.refuse(problem)
    if away := world.branches.away:
        return replace(response.end("held", _away(away)), target=target)
    tip = response.tips.of(target)
    if tip is None:
        return replace(
            response.refuse(
                Problem(
                    "frontmatter.target",
                    f"there is no branch {target!r} in this repository",
                    "name a branch that exists, or leave `target` out",
                )
            ),
            target=target,
        )
    return Aimed(**vars(response), target=target, tip=tip)


def _away(fault: Fault) -> Problem:
    cure = f" ({fault.hint})" if fault.hint else ""
    hint = f"nothing to send: the batch goes on by itself once that is mended{cure}"
    return Problem("target.busy", fault.message, hint, severity="warning")


def not_a_target(target: str, allowed: Sequence[str]) -> Problem | None:
    """What is against a branch that is none of these names and patterns."""
    if any(target == name or fnmatchcase(target, name) for name in allowed):
        return None
    likely = nearest(target, allowed)
    return Problem(
        "frontmatter.target",
        f"the branch {target!r} is not one that responses may name; allowed: " + ", ".join(allowed),
        f"did you mean {likely}?" if likely else "leave `target` out",
    )


def recognise(aimed: Aimed) -> Aimed | Decision:
    """Whether the same bytes wait or have landed already; then the batch is a duplicate."""
    repo, queue, sha256 = aimed.world.repo, aimed.world.queue, aimed.claim.source.sha256
    for id in () if aimed.choice.accepted else reversed(queue.by_source(sha256)):
        if id in (aimed.id, aimed.header.retries):
            continue
        report = queue.load(id) or traces.landed(aimed.world, id, sha256, aimed.target, aimed.tip)
        if report is None or report["target"] != aimed.target:
            continue
        earlier = history.standing(report, aimed.world, aimed.tip)
        if earlier == "touched":
            return aimed.refuse(history.touched_since(report, repo, aimed.tip))
        if earlier != "gone":
            return replace(aimed.end("duplicate"), duplicate_of=id)
    return aimed


def parse(based: Based) -> Read | Decision:
    """The edits of the text; lines are counted from the response's first."""
    began = perf_counter()
    envelope, candidates = based.envelope, based.generation.candidates
    paths = known_paths(based.tree, WorkTrees(based.world.repo))
    parsed = formats.parse(envelope.text, paths, based.header, envelope.first_line)
    timings = timed(based.timings, "parse_ms", began)
    if any(problem.severity == "error" for problem in parsed.problems):
        return replace(based, timings=timings).refuse(*parsed.problems)
    if candidates:
        parsed = replace(parsed, edits=tuple(_offered(edit, candidates) for edit in parsed.edits))
    known = based.but(
        timings=timings,
        subject=message.headline(based.header, parsed.summary),
        problems=(*based.problems, *parsed.problems),
    )
    read = Read(**known, parsed=parsed)
    if not parsed.edits:
        return read.refuse(
            Problem(
                "response.no_edits",
                "the response holds no edit",
                "send every change as a SEARCH/REPLACE block",
            )
        )
    limits = based.world.config.limits
    for count, most, what in (
        (len(parsed.edits), limits.edits, "edits"),
        (len({edit.path for edit in parsed.edits}), limits.files, "files"),
    ):
        if count > most:
            return read.refuse(
                Problem(
                    "response.too_large",
                    f"the response holds {count} {what}, more than `limits.{what}` ({most})",
                    "send the changes in several responses",
                )
            )
    return read


def _offered(edit: Edit, candidates: Mapping[str, tuple[str, ...]]) -> Edit:
    """The edit with the anchors that its prompt offered, whatever it says of them itself."""
    if edit.path not in candidates or not isinstance(edit.op, Anchored):
        return edit
    return replace(edit, op=replace(edit.op, candidates=candidates[edit.path]))


def resolve(read: Read) -> Planned | Decision:
    """Every edit's place on its base, and the files' new bytes; with the edits as they were
    corrected for that, and the base that was inferred for it."""
    began = perf_counter()
    choice, edits = read.choice, read.choice.among(read.parsed.edits)
    plan = batch.plan(edits, read.tree, read.world.rules, declared=read.declared)
    if plan.refused:
        read, plan = base.infer(read, edits, plan)
    read, plan, corrections = _corrected(read, plan)
    outcomes = selection.with_left_out(plan.edits, read.parsed.edits, choice.edits, choice.left)
    timings = timed(read.timings, "resolve_ms", began)
    if not (plan.refused or read.declared) and (lost := base.lost(read, plan)):
        plan = replace(plan, blind=(*plan.blind, *lost))
    known = read.but(timings=timings)
    planned = Planned(**known, plan=plan, edits=outcomes, corrections=corrections)
    if plan.refused:
        return planned.refuse(*plan.problems)
    parsed = read.parsed
    beside = account.beside(parsed.shown, parsed.named, parsed.edits, plan, read.tree)
    return planned.warned(*plan.problems, *beside)


def _corrected(read: Read, plan: Plan) -> tuple[Read, Plan, tuple[Correction, ...]]:
    """The response's edits and their plan, corrected with the configured model's help where that
    makes them apply; else both as they are, with a warning if the model gave no answer.  With every
    correction of the plan, the program's own as well."""
    model = None if read.choice.ahead else read.world.model
    corrections: tuple[Correction, ...] = ()
    if model is not None:
        from patchq.llm import corrections as asking  # few configure a model

        began = perf_counter()
        cache, edits = read.world.answers, read.choice.among(read.parsed.edits)
        before = asking.PlannedBatch(edits, plan, read.tree, read.world.rules, read.declared)
        questioner = asking.Questioner(model, cache, read.world.pulse)
        correct = asking.correct_quotes if plan.refused else asking.correct_escapes
        repair = correct(before, questioner)
        read = read.warned(*questioner.problems)
        if repair is not None:
            by_id = {edit.id: edit for edit in repair.batch.edits}
            edits = tuple(by_id.get(edit.id, edit) for edit in read.parsed.edits)
            read = replace(read, parsed=replace(read.parsed, edits=edits))
            plan, corrections = repair.batch.plan, repair.corrections
            for name in () if read.choice.dry_run else questioner.used:
                cache.keep(name)
        if questioner.tried:
            read = read.timed("model_ms", began)
    if plan.refused:
        return read, plan, ()
    return read, plan, (*corrections, *_by_program(read.parsed.edits, plan.edits))


def _by_program(edits: Sequence[Edit], outcomes: Sequence[EditOutcome]) -> Iterator[Correction]:
    """What was unescaped: the halves that have escapes, of the edits that match only without."""
    by_id = {edit.id: edit for edit in edits}
    whats: tuple[Literal["old", "new"], ...] = ("old", "new")
    for outcome in outcomes:
        if outcome.match == guards.RUNG and outcome.id in by_id:
            for what, half in zip(whats, halves(by_id[outcome.id].op), strict=True):
                data = half.encode("utf-8", "surrogateescape")
                if unescape(data) != data:
                    yield Correction(outcome.id, what, "program")


def check_results(planned: Planned) -> Checked | Decision:
    """Whether there is anything to do, and whether every file still makes sense to its language."""
    changes = planned.plan.changes
    decision = checked(planned.end("applied"), changes, planned.tip, planned.world)
    if planned.choice.dry_run and decision.lands:
        decision = replace(decision, changes=tuple(changes))
    return (
        Checked(**vars(planned), decision=decision, paths=mode.touched(changes))
        if decision.lands
        else decision
    )


def checked(decision: Decision, changes: Sequence[FileChange], tip: str, world: World) -> Decision:
    """The decision with the changes' diff, ended where the results are not to be; `tip` is the
    commit that they change."""
    if not changes:
        return decision.ended("duplicate")
    judgement = gate.judge(changes, world.repo.tree(tip), world)
    ms = judgement.syntax_ms
    decision = replace(
        decision,
        diff=judgement.diff,
        problems=(*decision.problems, *judgement.problems),
        timings=decision.timings if ms is None else {**decision.timings, "syntax_ms": ms},
    )
    return decision.ended("rejected") if judgement.refused else decision


def choose_mode(checked: Checked) -> Checked | Decision:
    """Proposed or applied, or held until nobody's hands are on the branch."""
    world = checked.world
    # What a hook or a person is asked about shall not turn out to be in the way later.
    asks = world.hooks.before or world.ask is not None or checked.choice.dry_run
    decision, follows = mode.ruled(
        checked.decision,
        checked.plan,
        checked.paths,
        checked.target,
        checked.tip,
        world,
        None if asks else checked.tips.unsure,
    )
    if not decision.lands or (decision is checked.decision and follows == checked.follows):
        return checked if decision.lands else decision
    return replace(checked, decision=decision, follows=follows)


def commit(checked: Checked) -> Decision:
    """The candidate commit, on the target's tip; not reachable from anywhere yet."""
    began = perf_counter()
    world, parsed, changes = checked.world, checked.parsed, checked.plan.changes
    text = message.compose(
        header=checked.header,
        edits=checked.edits,
        changes=changes,
        prose=parsed.prose if world.config.commit.prose else "",
        id=checked.id,
        source=checked.claim.source,
        base=checked.base.commit,
        summary=parsed.summary,
        corrections=checked.corrections,
    )
    titled = partial(replace, checked.decision, subject=message.subject(text))
    # A clock that was set back makes no commit that is older than its parent.
    committer = world.identity(not_before=world.repo.time(checked.tip))
    author = _author(checked, committer)
    if secrets := gate.words(text, f"{author.name} {author.email}"):
        return titled().ended("rejected", *secrets)
    if checked.choice.dry_run:
        return titled()
    sign = world.signer.signed
    try:
        oid, tree = world.repo.write_commit(checked.tip, changes, text, author, committer, sign)
    except CannotSign as fault:
        return titled().unsigned(fault)
    return titled(
        candidate=CandidateCommit(
            target=checked.target,
            parent=checked.tip,
            base=checked.base.commit,
            commit=oid,
            tree=tree,
            paths=checked.paths,
            follows=checked.follows,
        ),
        timings=timed(checked.decision.timings, "commit_ms", began),
    )


def _author(checked: Checked, committer: Identity) -> Identity:
    config = checked.world.config.commit
    name = checked.header.author or checked.parsed.author if config.author_from_response else None
    author = parse_identity(HIDDEN.sub("", name) if name else config.author or "")
    if author is None:
        return committer
    return replace(author, when=committer.when, offset=committer.offset)
