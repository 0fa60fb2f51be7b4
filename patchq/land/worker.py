"""Working off the queue: claims in, verdicts out, group by group.

`watch` and `run` share this; they differ only in what they do when nothing is left.

After a crash, what counts is whether the ref of an intended verdict moved before the process died.
A batch is never applied twice and never forgotten, whatever a person did to the branch meanwhile:
what git remembers of the intended commit (`traces`) decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import inf
from time import monotonic
from weakref import WeakKeyDictionary

from patchq.formats.envelope.opening import open_response
from patchq.git import records, refs, unwritten
from patchq.git.branches import BranchMove, worktree
from patchq.git.repository import Repository
from patchq.land import collisions, deaths, landing, marks, presubmit, reports
from patchq.land.landing import Publication
from patchq.model.errors import (
    CRASHED,
    CannotFollow,
    CannotSign,
    InDoubt,
    ObjectDamaged,
    Unreachable,
)
from patchq.model.report import COMMITTED, CommittedReport, Report, has_commit
from patchq.model.values import Envelope
from patchq.pipeline import traces
from patchq.pipeline.ground import flush
from patchq.pipeline.process import process
from patchq.pipeline.progress import Decision
from patchq.pipeline.world import Choice, Tips, World, recorded
from patchq.queue import Claim
from patchq.queue.hand import stem_id
from patchq.queue.troubles import Troubles
from patchq.report import page

GROUP = 256
"""Responses that share their flushes, at most."""
_GROUP_SECONDS = 0.2
_FOLLOW_SECONDS = 1.0
"""How long a group is gathered; and one that a work tree follows, as git reads and writes all of
the index for that, 0.2 s with 100,000 files; and one of many that wait, of which most would wait
for the groups before them."""
_CHECK_SECONDS = 5.0
"""The same for one that hooks check: those of a group run at the same time, and of two groups one
after the other, which takes longer than to decide on the few of a group."""
_MANY = 64
_TRIES = 20
"""How often a batch is decided again by itself since somebody else moved its branch meanwhile."""

_LOG = logging.getLogger("patchq")
Tell = Callable[[Report], None]
"""Called with each report once it is there; a batch that goes on waiting is not told of again."""


def start(world: World, tell: Tell, patience: float = 5.0) -> None:
    """Put right what a crash left, of this process's forerunner or of another one: locks, files,
    half-followed work trees, claims without a verdict; and note what people did by plain git.

    A git that outlived its owner is waited for, up to `patience` seconds.
    """
    refs.clean(world.repo.commondir)
    unwritten.clean(world.repo.commondir / "objects")
    worktree.recover(world.repo, wait=patience)
    finished, rest = finish(world.queue.recover(), world)
    for report in finished:
        tell(report)
        world.tell(report)
    left = [claim for claim in rest if not claim.held]
    deaths.forget_others(world.queue_root, rest)
    with deaths.counted(world.queue_root, left) as died:
        work(deaths.judged(left, world, died), world, tell)


def turn(world: World, tell: Tell) -> int:
    """Give a verdict to the responses that wait, one group of them; how many there were."""
    claims = world.desk.answered() if world.desk else []
    claims += world.queue.claim(1 if world.ask else presubmit.group_size(world, GROUP))
    work(claims, world, tell)
    return len(claims)


def look_at_held(world: World, tell: Tell) -> int:
    """Decide again on the batches that wait for something; how many of them went on.  What waits
    for the machine or the repository to be mended is tried by each process once, then every
    `hold_seconds`: each alone, and last what most processes died of."""
    looked, now, root = _looked.setdefault(world.repo, {}), monotonic(), world.queue_root
    claims = [claim for claim in world.queue.held() if world.queue.serves(claim)]
    if claims and world.branches.away:
        try:
            world.branches.refresh()
        except Unreachable:  # what is held for that stays so
            return 0
    for token in looked.keys() - {claim.token for claim in claims}:
        del looked[token]
    why = {claim.token: _waits_for_mending(claim, world) for claim in claims}
    ended = work([claim for claim in claims if not why[claim.token]], world, tell)
    ended += _look_at_unsigned(
        [claim for claim in claims if why[claim.token] == CannotSign.code], world, tell
    )
    due = [
        claim
        for claim in claims
        if why[claim.token] not in (None, CannotSign.code)
        and now - looked.get(claim.token, -inf) >= world.config.queue.hold_seconds
    ]
    for claim in sorted(due, key=lambda claim: deaths.tries(root, claim.token)):
        looked[claim.token] = now
        with deaths.counted(root, [claim]):
            again = [claim]
            if why[claim.token] == CRASHED:
                again = deaths.judged(again, world, {})
            ended += work(again, world, tell)
    return ended


def _look_at_unsigned(claims: Sequence[Claim], world: World, tell: Tell) -> int:
    """The oldest shows whether the key signs again, each time that the signer has rested; if it
    does, the others follow."""
    ended = 0
    for some in (claims[:1], claims[1:]):
        if not world.signer.resting:
            ended += work(some, world, tell)
    return ended


_looked: WeakKeyDictionary[Repository, dict[str, float]] = WeakKeyDictionary()
"""When this process last tried the batches that wait for something to be mended."""


def _waits_for_mending(claim: Claim, world: World) -> str | None:
    report = world.queue.load(claim.id) if claim.id else None
    return waits_for_mending(report) if report and report["state"] == "held" else None


_MENDED_BY_SOMEBODY = (ObjectDamaged.code, CannotFollow.code, CRASHED, CannotSign.code)


def waits_for_mending(report: Report) -> str | None:
    """The code of the last word on a held batch, if that is one on the machine or the repository:
    objects that cannot be read, a work tree that cannot follow, processes that died, a key that
    does not sign."""
    last = report["problems"][-1]["code"] if report["problems"] else None
    return last if last in _MENDED_BY_SOMEBODY else None


def work(
    claims: Iterable[Claim],
    world: World,
    tell: Tell,
    choice: Choice | None = None,
) -> int:
    """Give every claim its verdict, in order; how many got one that ends it.

    Each batch is decided on the branches as those before it leave them, and a group lands at once.
    The same bytes twice are two groups: the second is recognised by the report of the first.
    """
    world.check_that_it_decides()
    tips = Tips(world, _unsure.setdefault(world.repo, set()))
    ended, most = 0, presubmit.group_size(world, GROUP)
    group: list[Decision] = []
    sources = set[str]()
    claims = list(claims)
    if claims:
        with suppress(Unreachable):  # each is held for that
            world.branches.refresh()
        marks.catch_up(world)
    many = len(claims) > _MANY
    began = monotonic()

    def settle() -> None:
        nonlocal ended, began
        ended += _settle(group, world, tips, tell)
        group.clear()
        sources.clear()
        began = monotonic()

    for claim in claims:
        if claim.request and world.desk:
            world.desk.take(claim)
            continue
        same = claim.source.sha256 in sources
        late = group and monotonic() - began > _gathered(group, many, world)
        if same or len(group) >= most or late:
            settle()
        if world.ask and choice is None:
            settle()
        decision = _decide(claim, world, tips, choice)
        if decision.state == "held" and claim.held and not _may_stand(decision, group):
            landing.hold_on(decision, world)
            continue
        if _sees_what_has_not_landed(decision, group) or _may_stand(decision, group):
            settle()
            decision = _decide(claim, world, tips, decision.choice)
        group.append(decision)
        sources.add(claim.source.sha256)
    settle()
    return ended


def _gathered(group: Sequence[Decision], many: bool, world: World) -> float:
    """For how many seconds the group is gathered."""
    slow = many or any(before.follows for before in group)
    checked = _CHECK_SECONDS if world.hooks.parallel else 0.0
    return max(_FOLLOW_SECONDS if slow else _GROUP_SECONDS, checked, world.branches.seconds)


_unsure: WeakKeyDictionary[Repository, set[str]] = WeakKeyDictionary()
"""The paths that were in the way when a work tree was to follow, as long as they may be."""


def _sees_what_has_not_landed(decision: Decision, group: Sequence[Decision]) -> bool:
    """Whether the work tree looks dirty to it because that still has to follow another."""
    dirty = any(problem.code == "worktree.dirty" for problem in decision.problems)
    return dirty and any(before.follows and before.target == decision.target for before in group)


def _may_stand(decision: Decision, group: Sequence[Decision]) -> bool:
    """Whether it waits for one that is about to be proposed, and may stand on that then."""
    if decision.state != "held":
        return False
    waits = {p.conflicts_with.batch for p in decision.problems if p.conflicts_with}
    return any(before.state == "proposed" and before.id in waits for before in group)


def _decide(claim: Claim, world: World, tips: Tips, choice: Choice | None) -> Decision:
    choice = choice or recorded(claim)
    if world.ask and choice is None:
        choice = world.ask(claim)
    world.pulse()
    if claim.intended and world.branches.remote and traces.moved_to(claim.intended, world):
        # A push of its former owner arrived since `finish` asked: on top of that it looks as if
        # somebody else had made its changes.
        raise InDoubt(
            f"batch {claim.intended['id']} has landed meanwhile, by the process that had it before",
            "it is recovered, and gets its verdict by itself",
        )
    with world.doing(claim.id or stem_id(claim.source.name), "deciding"):
        decision = process(claim, world, tips, choice)
    if decision.state == "applied" and decision.candidate:
        tips.move(decision.candidate.target, decision.candidate.commit)
    return decision


def _settle(
    group: Sequence[Decision], world: World, tips: Tips, tell: Tell, tries: int = _TRIES
) -> int:
    """Have a group checked, and land it.

    What was built on a batch that a hook refused is decided again without that.  What others moved
    the branch away from is decided again, too, in two halves: the smaller a group is, the sooner
    it lands.
    """
    checked = presubmit.check(group, world)
    landed = landing.land(_complete(checked.kept, world), world, tips)
    if world.hooks.before:
        tips.forget()  # they may hold what a hook refused
    ended = sum(_publish(run, world, tell) for run in _runs(landed.done))
    world.queue.tell()
    collisions.spread(landed.done, world)
    lost = landed.again
    middle = len(lost) // 2
    for half in (lost[:middle], lost[middle:]):
        for again in _decided_again(half, world, tips):
            if len(half) == 1 and tries == 1:
                again = [_given_up(again[0]), *again[1:]]
            ended += _settle(again, world, tips, tell, tries - 1 if len(lost) == 1 else tries)
    for again in _decided_again(checked.dropped, world, tips):
        ended += _settle(again, world, tips, tell, tries)
    return ended


def _complete(decisions: Sequence[Decision], world: World) -> list[Decision]:
    """The decisions with what their reports say of other batches: those with which each collides,
    and the one that it answers."""
    return [
        replace(decision, review=reports.answer(decision, world))
        for decision in collisions.warned(decisions, world)
    ]


def _decided_again(
    decisions: Sequence[Decision], world: World, tips: Tips
) -> Iterator[list[Decision]]:
    """New decisions in place of these, in groups, each of which has to be settled before the
    next."""
    group: list[Decision] = []
    for old in decisions:
        decision = _decide(old.claim, world, tips, old.choice)
        if _sees_what_has_not_landed(decision, group):
            yield group
            group = []
            decision = _decide(old.claim, world, tips, old.choice)
        group.append(decision)
    if group:
        yield group


def _runs(done: Sequence[Publication]) -> Iterator[list[Publication]]:
    """The verdicts, in their order, as far as they can be published together: one that may replace
    another batch begins anew, since it has to find that one's report."""
    run: list[Publication] = []
    for written in done:
        if run and reports.may_supersede(written.decision):
            yield run
            run = []
        run.append(written)
    if run:
        yield run


def _publish(run: Sequence[Publication], world: World, tell: Tell) -> int:
    """How many of the claims ended."""
    first = run[0].decision
    if reports.may_supersede(first):
        reports.supersede(first.id, first.header, world)
    with world.queue.together():
        for written in run:
            landing.publish(written, world)
    for decision, report in ((written.decision, written.report) for written in run):
        if decision.state != "held" or not decision.claim.held:
            tell(report)
            world.tell(report)
        if decision.state == "rejected" and world.desk:
            world.desk.refused(report)
    return sum(written.decision.state != "held" for written in run)


def _given_up(decision: Decision) -> Decision:
    if decision.candidate is None:
        return decision
    what = f"{decision.target}, or a work tree on it,"
    if decision.state == "proposed":
        what = records.branch(decision.id)
    return decision.held(
        f"{what} was not as it had been when the batch was decided on, {_TRIES} times in a row",
        "nothing to send: the batch lands by itself once the branch is quieter",
    )


def finish(claims: Sequence[Claim], world: World) -> tuple[list[Report], list[Claim]]:
    """Publish the intended verdict of each recovered claim whose ref has moved.

    Returns these verdicts, and the other claims, which are to be decided anew.  What may have been
    pushed to a remote is asked of that, and pushed again where no answer ever came;
    `errors.InDoubt` or `errors.Unreachable` while that cannot be.
    """
    landed: list[tuple[Claim, Report]] = []
    rest: list[Claim] = []
    if any(claim.intended and claim.intended["state"] in COMMITTED for claim in claims):
        world.branches.refresh()
        _push_again(claims, world)
    for claim in claims:
        report = claim.intended
        try:
            commit = traces.moved_to(report, world) if report else None
        except ObjectDamaged as damage:  # whether it landed cannot be told: the next start asks
            _doubt(report, damage, world)
            continue
        if report:
            Troubles(world.queue_root).over(f"claim.{report['id']}")
        if report and commit:
            landed.append((claim, _recorded(report, commit, world)))
        else:
            rest.append(claim)
    if landed:
        world.queue.enlist([(claim, report["id"]) for claim, report in landed])
        flush(world)
    for claim, report in landed:
        opened = open_response(claim.data)
        if isinstance(opened, Envelope):
            reports.supersede(
                report["id"], replace(opened.header, retries=report["retry"]["of"]), world
            )
        world.queue.publish(claim, report, page.to_markdown(report))
    return [report for _, report in landed], rest


def _push_again(claims: Sequence[Claim], world: World) -> None:
    """Push what was to land when a process died, where the remote is as it was then: that push may
    be under way still, and only one of the two can be taken."""
    if world.branches.remote is None:
        return
    tips, moves, values = Tips(world), list[BranchMove](), ExitStack()
    with values:
        for report in (claim.intended for claim in claims):
            if report is None or report["state"] not in COMMITTED or not has_commit(report):
                continue
            commit, target = report["commit"], report["target"]
            if not world.repo.resolve_commit(commit) or not world.repo.exists(commit):
                continue  # it was never written, so it was never pushed
            branch, old = records.branch(report["id"]), None
            if report["state"] == "applied":
                branch, (old, *_) = target, world.repo.parents(commit)
            if tips.of(branch) != old or not _is_rooted(report, world, tips):
                continue
            value = refs.stage(world.repo, commit)
            values.callback(value.drop)
            log = f"patchq: {report['id']}: recovered"
            moves.append(BranchMove(branch, old, value, log, world.identity()))
            tips.move(branch, commit)
        if moves:
            for moved in world.branches.land(moves):
                if isinstance(moved.fault, Unreachable):
                    raise moved.fault


def _is_rooted(report: CommittedReport, world: World, tips: Tips) -> bool:
    """Whether what the intended commit stands on is, or will be, where the batch says: its target,
    or the proposal that it is built on."""
    below = report["stands_on"]
    tip = tips.of(records.branch(below["batch"]) if below else report["target"])
    (parent, *_) = world.repo.parents(report["commit"])
    if tip is None or below:
        return tip == parent
    return world.repo.is_ancestor(parent, tip)


def _doubt(report: Report | None, damage: ObjectDamaged, world: World) -> None:
    """Say once that a verdict waits for what git cannot read."""
    id, troubles = report["id"] if report else "", Troubles(world.queue_root)
    message = f"whether batch {id} landed before a crash cannot be told: {damage.message}"
    if message not in (trouble.message for trouble in troubles.all()):
        _LOG.warning("%s", message, extra={"batch": id})
        cure = f"{damage.hint}; it gets its verdict by itself then"
        troubles.note(f"claim.{id}", message, cure)


def _recorded(intended: Report, commit: str, world: World) -> Report:
    """The report as it is now, with the record made that follows the move of its ref."""
    if not world.repo.resolve_commit(commit):  # a person removed it, and git collected it
        return {**intended, "commit": commit}
    log = f"patchq: {intended['id']}: recovered"
    refs.move(world.repo, traces.ref_of(intended), None, commit, log, world.identity())
    return {**intended, "commit": commit, "tree": world.repo.tree(commit).root}
