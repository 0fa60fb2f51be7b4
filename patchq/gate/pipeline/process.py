"""The story: one response, from its bytes to a verdict that can land.

response -> envelope -> target and base -> parse -> resolve, conflicts, plan -> candidate commit.
`process` calls the stages in this order; each returns the response with what it found, and raises
`EndedEarly` where the verdict is known before the end.  A refusal at any stage ends in the same
report as a success; nothing has been written by then but unreachable objects.

A declared base is believed.  Without one the tip is tried first, then the newest commit of recent
history on which every edit resolves: a quote of lines that are gone tells which one was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from time import perf_counter
from typing import Literal

from msgspec.structs import replace

from patchq.core import formats
from patchq.core.formats import account
from patchq.core.formats.envelope.front_matter import header_of, open_response
from patchq.core.formats.marks.paths import BasePaths, base_paths
from patchq.core.model.names import suggestion
from patchq.core.model.ops import Anchored, Rename, Write, halves
from patchq.core.model.values import (
    Base,
    Correction,
    Edit,
    EditOutcome,
    Envelope,
    Parsed,
    Plan,
    Problem,
    Tree,
)
from patchq.core.plan import batch, guards
from patchq.core.resolve.levels import unescape
from patchq.core.text.quote import HIDDEN
from patchq.gate.errors import CannotSign, Fault, ObjectDamaged, disk_fault
from patchq.gate.git.checkout import WorkTrees
from patchq.gate.git.objects import Identity, digest_of, parse_identity
from patchq.gate.git.repository import State as FileState
from patchq.gate.pipeline import carry, depends, history, judge
from patchq.gate.pipeline.progress import (
    Decision,
    EndedEarly,
    Response,
    crashed,
    decide,
    milliseconds,
    refused,
)
from patchq.gate.pipeline.session import AS_SENT, Choice, Session, Tips, with_left_out
from patchq.gate.queue import Claim
from patchq.gate.report import logs, message, secrecy

# Limits of the search for a base: commits back, different states of the named files, and the bytes
# that these may have together.
_MOST_COMMITS = 300
_MOST_STATES = 30
_MOST_BYTES = 20 << 20
# Codes that an edit made for an older commit meets on the tip. An ambiguous one is none of these:
# that it was unique once does not show that its author saw it so.
_MISSED = {"match.none", "match.count", "anchor.none", "path.not_found"}


def process(claim: Claim, session: Session, tips: Tips, choice: Choice = AS_SENT) -> Decision:
    """Return the decision on one response, on the `tips` that it would land on."""
    response = Response(claim=claim, session=session, choice=choice)
    decision: Decision | None = None
    with logs.about(claim.id or claim.source.name):
        try:
            response = open_envelope(response)
            check_envelope(response)
            response = choose_target(response, tips)
            refuse_duplicate(response)
            response = depends.wait(response)
            response = replace(response, base=choose_base(response))
            response = parse(response)
            response = resolve(response)
            check_resolved(response)
            response = carry.to_tip(response)
            changes, blind = response.plan.changes, response.plan.blind
            decision = judge.checked(decide(response, "applied"), changes, session)
            if decision.lands:
                looks = tips.looks(claim)
                decision = judge.choose_mode(decision, changes, session, looks=looks, blind=blind)
            if decision.lands:
                decision = commit(decision, response)
            return decision
        except EndedEarly as end:  # a refusal, a duplicate or a hold
            return decide(response, end.state, *end.problems, **end.known)
        except ObjectDamaged as damage:  # this batch waits, the others go on
            return (decision or decide(response, "rejected")).damaged(damage)
        except Fault:  # the machine: whoever runs this begins again
            raise
        except Exception as error:  # a defect refuses this response only
            if isinstance(error, OSError) and (broken := disk_fault(error)):
                raise broken from error
            return crashed(decision or decide(response, "rejected"), error)


def with_ids(claims: Sequence[Claim], session: Session) -> list[Claim]:
    """Return claims with the ids that their responses ask for, all given at once.

    What a model has still to be asked for has none.
    """
    responses = [claim for claim in claims if not claim.request]
    wanted = [(claim, wanted_id(claim)) for claim in responses]
    ids = iter(session.queue.reserve_all(wanted) if wanted else ())
    return [claim if claim.request else replace(claim, id=next(ids)) for claim in claims]


def wanted_id(claim: Claim) -> str:
    """Return the id that a response asks for: by its header, or else by its file's name."""
    own = None
    with suppress(Exception):  # a defect, for which `process` refuses this response alone
        own = header_of(claim.data).id
    return secrecy.batch_id(own or claim.stem)


def open_envelope(response: Response) -> Response:
    """Return the response with its header, its text and its id.

    An unreadable one gets an id, too.  A claim with a problem is refused for it, and held for one
    that is a warning.
    """
    claim, retries, problem = response.claim, response.choice.retries, response.claim.problem
    wrong = (problem,) if problem and problem.severity == "error" else None
    opened = wrong or open_response(claim.data)
    if isinstance(opened, Envelope):
        header = replace(opened.header, retries=retries) if retries else opened.header
        response = replace(response, envelope=replace(opened, header=header))
    else:
        response = replace(response, parsed=Parsed(problems=opened))
    id = claim.id or response.session.queue.reserve(claim, wanted_id(claim))
    logs.turn_to(id)
    return replace(response, id=id)


def check_envelope(response: Response) -> None:
    """Refuse a response whose header or text cannot be used; hold one whose claim says so."""
    claim = response.claim
    wrong = secrecy.in_header(response.header, claim.stem) or claim.generation.problems
    if problems := wrong or response.parsed.problems:
        raise EndedEarly("rejected", *problems)
    if doubt := claim.problem:
        raise EndedEarly("held", doubt)
    response.warnings.extend(_without_effect(response))


def _without_effect(response: Response) -> Iterator[Problem]:
    header, session = response.header, response.session
    if header.author and not session.config.commit.author_from_response:
        yield Problem(
            "frontmatter.value",
            "the front matter's `author` is not used: `commit.author_from_response` is not set",
            "leave `author` out",
            severity="warning",
        )
    retried = header.retries
    before = session.queue.load(retried) if retried and header.answers else None
    known = {one.id for one in before.review.comments} if before and before.review else ()
    if wrong := [id for id in header.answers if before and id not in known]:
        yield Problem(
            "frontmatter.value",
            f"the front matter's `answers` has no effect for {', '.join(wrong[:5])}: "
            "no such comment waits for an answer",
            "give the ids of the comments in the report of the change that was sent back",
            severity="warning",
        )
    if retried and not history.is_known(session, retried):
        yield Problem(
            "frontmatter.value",
            f"the front matter's `retries` has no effect: no change {retried!r} is known",
            "give the id that the refused response's report has",
            severity="warning",
        )


def choose_target(response: Response, tips: Tips) -> Response:
    """Return the response with the branch that it is for, and its tip."""
    session, choice = response.session, response.choice
    default = choice.target or session.target
    branch = choice.target or response.header.target or default
    if problem := not_a_target(branch, [default, *session.config.targets]):
        raise EndedEarly("rejected", problem)
    if away := session.branches.away:
        cure = f" ({away.hint})" if away.hint else ""
        hint = f"nothing to send: the change goes on by itself once that is mended{cure}"
        busy = Problem("target.busy", away.message, hint, severity="warning")
        raise EndedEarly("held", busy, target=branch)
    tip = tips.of(branch)
    if tip is None:
        raise refused(
            "frontmatter.target",
            f"there is no branch {branch!r} in this repository",
            "name a branch that exists, or leave `target` out",
            target=branch,
        )
    return replace(response, target=branch, tip=tip)


def refuse_duplicate(response: Response) -> None:
    """End a response whose very bytes wait or have landed already."""
    session, sha256 = response.session, response.claim.source.sha256
    for id in () if response.choice.accepted else reversed(session.queue.by_source(sha256)):
        if id != response.id:
            carry.refuse_known(response, id, sha256)


def choose_base(response: Response) -> Base:
    """Return the commit that the agent saw: the declared one, else, for now, the target's tip."""
    session, declared = response.session, response.header.base
    if response.choice.base is not None:
        return response.choice.base
    if declared is None:
        return Base(response.tip, "tip")
    # A clone's own branch is as old as the clone, and another on each machine.
    shared = session.branches.tip(declared) if session.branches.remote else None
    if commit := shared or session.repo.resolve_commit(declared):
        return Base(commit, "declared")
    raise refused(
        "frontmatter.base",
        f"there is no commit {declared!r} in this repository",
        "give the id of the commit that you read the files from, in full, or leave `base` out",
    )


def not_a_target(target: str, allowed: Sequence[str]) -> Problem | None:
    """Return a problem if a branch matches none of the `allowed` names and patterns."""
    if any(target == name or fnmatchcase(target, name) for name in allowed):
        return None
    return Problem(
        "frontmatter.target",
        f"the branch {target!r} is not one that responses may name; allowed: " + ", ".join(allowed),
        suggestion(target, allowed, "leave `target` out"),
    )


def lane_of(data: bytes, default: str, targets: Sequence[str]) -> str:
    """Return the branch that a response is for; the default, where it is refused, for any other.

    `targets` are patterns of the branches that are allowed.
    """
    named = header_of(data).target
    return default if named is None or not_a_target(named, [default, *targets]) else named


def _known_paths(tree: Tree, work_trees: WorkTrees) -> BasePaths:
    """Return the names by which a response may call the files of the tree."""

    def below(path: str) -> str | None:
        found = work_trees.find(path)
        seen = found.path is not None and (not found.reason or paths.has(found.path))
        return found.path if seen else None

    paths = base_paths(tree, below, work_trees.ignore)
    return paths


def parse(response: Response) -> Response:
    """Return the response with its edits; lines are counted from its first."""
    began = perf_counter()
    session, envelope = response.session, response.envelope
    paths = _known_paths(session.repo.tree(response.base.commit), WorkTrees(session.repo))
    parsed = formats.parse(envelope.text, paths, response.header, envelope.first_line)
    response.timings["parse_ms"] = milliseconds(began)
    if any(problem.severity == "error" for problem in parsed.problems):
        raise EndedEarly("rejected", *parsed.problems)
    response.warnings.extend(parsed.problems)
    if not parsed.edits:
        raise refused(
            "response.no_edits",
            "the response holds no edit",
            "send every change as a SEARCH/REPLACE block",
        )
    if (count := len(parsed.edits)) > (most := session.config.limits.edits):
        raise refused(
            "response.too_large",
            f"{count} edits are more than `limits.edits` ({most})",
            "send the changes in several responses",
        )
    if candidates := response.claim.generation.candidates:
        # The anchors that its prompt offered count, whatever an edit says of them.
        parsed = replace(
            parsed,
            edits=tuple(
                replace(edit, op=replace(edit.op, candidates=candidates[edit.path]))
                if edit.path in candidates and isinstance(edit.op, Anchored)
                else edit
                for edit in parsed.edits
            ),
        )
    return replace(response, parsed=parsed)


def resolve(response: Response) -> Response:
    """Return the response with each edit's place on its base, and new bytes.

    The edits are as they were corrected for that, and the base is the one that was inferred.
    """
    began = perf_counter()
    session, choice, base = response.session, response.choice, response.base
    edits, tree = choice.among(response.parsed.edits), session.repo.tree(base.commit)
    session.repo.promised.fetch_files(tree.root, (edit.path for edit in edits))
    plan = batch.plan(edits, tree, session.rules, declared=base.how == "declared")
    if plan.refused:
        base, plan = _infer(session, base, edits, plan)
    response = _corrected(replace(response, base=base, plan=plan))
    plan = response.plan
    outcomes = with_left_out(plan.edits, response.parsed.edits, choice.left)
    response.timings["resolve_ms"] = milliseconds(began)
    if not plan.refused and base.how != "declared":
        lost = _lost(response)
        plan = replace(plan, blind=(*plan.blind, *lost))
    return replace(response, plan=plan, edits=outcomes, on_base=plan.changes)


def _infer(session: Session, base: Base, edits: Sequence[Edit], on_tip: Plan) -> tuple[Base, Plan]:
    """Return the newest commit on which every edit resolves, and its plan.

    Without one, or where the tip gave other errors than missed texts, both are as they were.
    """
    errors = {error.code for error in on_tip.errors}
    if base.how != "tip" or not errors <= _MISSED:
        return base, on_tip
    repo, tip = session.repo, base.commit
    named = [path for e in edits for path in (e.path, e.op.to if isinstance(e.op, Rename) else "")]
    paths = [path for path in dict.fromkeys(named) if path]
    seen, left = set[FileState](), _MOST_BYTES
    for commit, state in islice(repo.states(tip, paths), _MOST_COMMITS):
        if state in seen:
            continue
        seen.add(state)
        if commit == tip:
            continue
        tree = repo.tree(commit)
        found = [path for path in paths if (at := tree.entry(path)) and at.kind == "file"]
        left -= sum(len(tree.read(path)) for path in found)
        if len(seen) > _MOST_STATES or left < 0:
            break
        plan = batch.plan(edits, tree, session.rules, diagnosed=False)
        if not plan.refused and plan.changes:
            return Base(commit, "inferred"), plan
    return base, on_tip


def _lost(response: Response) -> tuple[str, ...]:
    """Return the new files that the branch had until recently.

    Only files written as a whole count: their author may have meant to rewrite them.
    """
    new = {change.path for change in response.plan.changes if change.before is None}
    edits = response.parsed.edits if new else ()
    written = [edit.path for edit in edits if isinstance(edit.op, Write) and edit.path in new]
    if not written:
        return ()
    states = response.session.repo.states(response.tip, written)
    lately = islice(states, _MOST_COMMITS)
    there = {path for _, state in lately for path, oid in zip(written, state, strict=True) if oid}
    return tuple(sorted(there))


def check_resolved(response: Response) -> None:
    """Refuse a response with an edit without a certain place; warn of code that went nowhere."""
    plan, parsed = response.plan, response.parsed
    if plan.refused:
        raise EndedEarly("rejected", *plan.problems)
    tree = response.session.repo.tree(response.base.commit)
    beside = account.beside(parsed.shown, parsed.named, parsed.edits, plan, tree)
    response.warnings.extend((*plan.problems, *beside))


def _corrected(response: Response) -> Response:
    """Return the response with its edits and plan, corrected where that makes them apply.

    The configured model helps, if there is one; a warning says that it gave no answer.
    """
    session, choice = response.session, response.choice
    model = None if choice.ahead else session.model
    corrections: tuple[Correction, ...] = ()
    if model is not None:
        from patchq.llm import corrections as asking  # few configure a model
        from patchq.llm.chat import Cache

        began = perf_counter()
        edits, plan = choice.among(response.parsed.edits), response.plan
        tree, declared = session.repo.tree(response.base.commit), response.base.how == "declared"
        before = asking.PlannedBatch(edits, plan, tree, session.rules, declared)
        answers = Cache() if choice.dry_run else session.answers
        questioner = asking.Questioner(model, answers, session.pulse)
        correct = asking.correct_quotes if plan.refused else asking.correct_escapes
        repair = correct(before, questioner)
        response.warnings.extend(questioner.problems.values())
        if repair is not None:
            by_id = {edit.id: edit for edit in repair.batch.edits}
            edits = tuple(by_id.get(edit.id, edit) for edit in response.parsed.edits)
            parsed, corrections = replace(response.parsed, edits=edits), repair.corrections
            response = replace(response, parsed=parsed, plan=repair.batch.plan)
        if questioner.tried:
            response.timings["model_ms"] = milliseconds(began)
    if response.plan.refused:
        return response
    own = _by_program(response.parsed.edits, response.plan.edits)
    return replace(response, corrections=(*corrections, *own))


def _by_program(edits: Sequence[Edit], outcomes: Sequence[EditOutcome]) -> Iterator[Correction]:
    """Yield the halves that were unescaped, of edits that match only without their escapes."""
    by_id = {edit.id: edit for edit in edits}
    whats: tuple[Literal["old", "new"], ...] = ("old", "new")
    for outcome in outcomes:
        if outcome.match == guards.UNESCAPED and outcome.id in by_id:
            for what, half in zip(whats, halves(by_id[outcome.id].op), strict=True):
                data = half.encode("utf-8", "surrogateescape")
                if unescape(data) != data:
                    yield Correction(outcome.id, what, "program")


def commit(decision: Decision, response: Response) -> Decision:
    """Return the decision with its commit, on the target's tip; nothing reaches it yet."""
    began = perf_counter()
    session, parsed, changes = response.session, response.parsed, response.plan.changes
    text = message.compose(
        header=response.header,
        edits=response.edits,
        changes=changes,
        prose=parsed.prose if session.config.commit.prose else "",
        id=response.id,
        source=response.claim.source,
        base=response.base.commit,
        digest=digest_of(response.on_base),
        summary=parsed.summary,
        corrections=response.corrections,
    )
    decision = replace(decision, subject=message.subject(text))
    # A clock that was set back makes no commit that is older than its parent.
    committer = session.identity(not_before=session.repo.time(decision.tip))
    author = _author(response, committer)
    if secrets := judge.secrets_in_words(text, f"{author.name} {author.email}"):
        return decision.with_verdict("rejected", *secrets)
    if response.choice.dry_run:
        return decision
    sign = session.signer.signed
    try:
        oid, tree = session.repo.write_commit(decision.tip, changes, text, author, committer, sign)
    except CannotSign as fault:
        return decision.held(fault.message, fault.hint, fault.code)
    response.timings["commit_ms"] = milliseconds(began)
    return replace(decision, commit=oid, tree=tree, paths=judge.touched(changes))


def _author(response: Response, committer: Identity) -> Identity:
    config = response.session.config.commit
    name = response.header.author or response.parsed.author if config.author_from_response else None
    author = parse_identity(HIDDEN.sub("", name) if name else config.author or "")
    if author is None:
        return committer
    return replace(author, when=committer.when, offset=committer.offset)
