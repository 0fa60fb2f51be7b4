"""Working off the queue: claims in, verdicts out, group by group.

`watch` and `run` share this; they differ only in what they do when nothing is left.
What a crash left with an intended verdict is `recovery`'s; this decides on the rest anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from math import inf
from time import monotonic, sleep, thread_time
from weakref import WeakKeyDictionary

from patchq.core.model.errors import (
    CRASHED,
    CannotFollow,
    CannotSign,
    Fault,
    ObjectDamaged,
    Unreachable,
)
from patchq.core.model.frozen import frozen
from patchq.core.model.report import Report
from patchq.gate.git import records, refs, unwritten
from patchq.gate.git.branches import worktree
from patchq.gate.git.repository import Repository
from patchq.gate.land import (
    asking,
    collisions,
    deaths,
    landing,
    marks,
    presubmit,
    recovery,
    reports,
)
from patchq.gate.land.landing import Publication
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.world import Choice, Tips, World, recorded
from patchq.gate.queue import Claim
from patchq.gate.queue.hand import stem_id

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
_CROWD = 4
"""How many times as long it takes by the clock, at most, where others have the processor: a group
that ends sooner there has fewer in it, and costs those others as much as a large one."""
_PULSE_SECONDS = 0.1
_TRIES = 20
"""How often a batch is decided again by itself since somebody else moved its branch meanwhile."""

_LOG = logging.getLogger("patchq")
Tell = recovery.Tell


def start(world: World, tell: Tell, patience: float = 5.0) -> None:
    """Put right what a crash left, of this process's forerunner or of another one: locks, files,
    half-followed work trees, claims without a verdict; and note what people did by plain git.

    A git that outlived its owner is waited for, up to `patience` seconds.
    """
    refs.clean(world.repo.commondir)
    unwritten.clean(world.repo.commondir / "objects")
    worktree.recover(world.repo, wait=patience)
    rest = recovery.finish(world.queue.recover(), world, tell)
    left = [claim for claim in rest if not claim.held]
    deaths.forget_others(world.queue_root, rest)
    for some in deaths.portions(world.queue_root, left):
        if world.stop.is_set:
            return
        with deaths.counted(world.queue_root, some) as died:
            work(deaths.judged(some, world, died), world, tell)


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


def work(claims: Iterable[Claim], world: World, tell: Tell, choice: Choice | None = None) -> int:
    """Give every claim its verdict, in order; how many got one that ends it.

    Each batch is decided on the branches as those before it leave them, and a group lands at once.
    The same bytes twice are two groups: the second is recognised by the report of the first.
    Once `world.stop` is set, what is decided on lands, and nothing else is begun.
    """
    world.check_that_it_decides()
    tips = Tips(world, _unsure.setdefault(world.repo, set()))
    ended, most = 0, presubmit.group_size(world, GROUP)
    group: list[Decision] = []
    sources = set[str]()
    claims = list(claims)
    if claims:
        with suppress(Unreachable):  # each is held for that
            asking.learn(claims, world, choice)
        marks.catch_up(world)
    many = len(claims) > _MANY
    begun = _Begun()

    def settle() -> None:
        nonlocal ended, begun
        ended += _settle(group, world, tips, tell)
        group.clear()
        sources.clear()
        begun = _Begun()

    for claim in claims:
        if world.stop.is_set:
            break  # the next start decides on the rest
        if claim.request and world.desk:
            world.desk.take(claim)
            continue
        same = claim.source.sha256 in sources
        late = group and begun.lasts > _gathered(group, many, world)
        if same or len(group) >= most or late:
            settle()
        if world.ask and choice is None:
            settle()
        left, landed = recovery.without_landed([claim], world, tell)
        ended += landed
        if not left:
            continue
        decision = _decide(claim, world, tips, choice)
        if decision.state == "held" and claim.held and not _may_stand(decision, group):
            landing.hold_on(decision, world)
            continue
        if _sees_what_has_not_landed(decision, group) or _may_stand(decision, group):
            settle()
            decision = _decide(claim, world, tips, decision.choice)
        if any(before.id == decision.duplicate_of for before in group):
            settle()
            decision = _decide(claim, world, tips, decision.choice)
        group.append(decision)
        sources.add(claim.source.sha256)
    settle()
    return ended


@frozen
class _Begun:
    """When a group was begun, by the clock and by what this thread has worked since it is."""

    clock: float = field(default_factory=monotonic)
    worked: float = field(default_factory=thread_time)

    @property
    def lasts(self) -> float:
        """Seconds of work on it."""
        return max(thread_time() - self.worked, (monotonic() - self.clock) / _CROWD)


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
    _rest(checked.kept, world)
    landed = landing.land(_complete(checked.kept, world), world, tips)
    if world.hooks.before:
        tips.forget()  # they may hold what a hook refused
    # What moves nothing may be of a batch that came with the push which this one met.
    idle = [one.decision for one in landed.done if one.decision.candidate is None]
    stand, ended = _still_open(idle, world, tell)
    gone = {one.claim.token for one in idle} - {one.claim.token for one in stand}
    done = [one for one in landed.done if one.decision.claim.token not in gone]
    ended += sum(_publish(run, world, tell) for run in _runs(done))
    world.queue.tell()
    collisions.spread(done, world)
    lost, others = _still_open(landed.again, world, tell)
    dropped, more = _still_open(checked.dropped, world, tell)
    ended += others + more
    if world.stop.is_set:
        return ended  # the next start decides on the rest
    middle = len(lost) // 2
    for half in (lost[:middle], lost[middle:]):
        for again in _decided_again(half, world, tips):
            if len(half) == 1 and tries == 1:
                again = [_given_up(again[0]), *again[1:]]
            ended += _settle(again, world, tips, tell, tries - 1 if len(lost) == 1 else tries)
    for again in _decided_again(dropped, world, tips):
        ended += _settle(again, world, tips, tell, tries)
    return ended


def _rest(decisions: Sequence[Decision], world: World) -> None:
    """Wait while checked-out branches rest, unless a person asked for what lands."""
    lands = any(one.state == "applied" and one.claim.choice is None for one in decisions)
    while lands and not world.ask and not world.stop.is_set and (rest := world.branches.rest()):
        world.pulse()
        sleep(min(rest, _PULSE_SECONDS))


def _still_open(
    decisions: Sequence[Decision], world: World, tell: Tell
) -> tuple[list[Decision], int]:
    """Those to decide again, and how many of them have landed meanwhile."""
    claims, ended = recovery.without_landed([decision.claim for decision in decisions], world, tell)
    left = {claim.token for claim in claims}
    return [decision for decision in decisions if decision.claim.token in left], ended


def _complete(decisions: Sequence[Decision], world: World) -> list[Decision]:
    """The decisions with what their reports say of other batches: those with which each collides,
    and the one that it answers."""
    warned = collisions.warned(decisions, world)
    answers = [reports.answer(decision, world) for decision in warned]
    return [
        decision if answer is decision.review else replace(decision, review=answer)
        for decision, answer in zip(warned, answers, strict=True)
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
    """How many of the claims ended.  What is published is told of, also where the rest cannot be:
    nobody recovers its claim."""
    first = run[0].decision
    if reports.may_supersede(first):
        reports.supersede(first.id, first.header, world)
    try:
        with world.queue.together():
            for written in run:
                landing.publish(written, world)
    except Fault:
        _say([written for written in run if _is_published(written, world)], world, tell)
        raise
    _say(run, world, tell)
    return sum(written.decision.state != "held" for written in run)


def _is_published(written: Publication, world: World) -> bool:
    with suppress(Fault):
        return world.queue.load(written.decision.id) == written.report
    return False


def _say(run: Sequence[Publication], world: World, tell: Tell) -> None:
    for decision, report in ((written.decision, written.report) for written in run):
        if decision.state != "held" or not decision.claim.held:
            tell(report)
            world.tell(report)
        if decision.state == "rejected" and world.desk:
            world.desk.refused(report)


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
