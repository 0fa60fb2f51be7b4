"""Working off the queue: claims in, verdicts out, group by group.

`watch` and `run` share this; they differ only in what they do when nothing is left.
`landing.finish` ends what a crash left with an intended verdict; this decides on the rest anew.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from time import monotonic, sleep
from weakref import WeakKeyDictionary

from msgspec import to_builtins
from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.gate.errors import CRASHED, CannotFollow, CannotSign, ObjectDamaged, Unreachable
from patchq.gate.git import object_buffer, records, refs
from patchq.gate.git.branches import worktree
from patchq.gate.git.repository import Repository
from patchq.gate.land import elsewhere, landing, overlaps, presubmit, reports
from patchq.gate.land.presubmit import Search, TargetRed
from patchq.gate.pipeline.process import process, with_ids
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import AS_SENT, Session, Tips, recorded
from patchq.gate.queue import Claim
from patchq.gate.queue.inbox import stem_id
from patchq.gate.report.schema import Report

GROUP = 256  # responses that share their flushes, at most
_GROUP_SECONDS = 1.0  # git reads and writes all of an index once for each group
_PULSE_SECONDS = 0.1
_TRIES = 20  # times that a batch is decided again by itself since its branch was moved meanwhile

MOST_DEATHS = 5  # so many processes may end while they decide on one response; then it is held
POISON = Problem(
    CRASHED,
    f"{MOST_DEATHS} processes ended while they decided on this response",
    "see the log, and `dmesg`, for what ended them; `patchq retry` tries it again, "
    "`patchq discard` ends it",
    severity="warning",
)

Tell = landing.Tell


def start(session: Session, tell: Tell, patience: float = 5.0) -> None:
    """Put right what a crash left, of this process's forerunner or of another one: locks, files,
    half-followed work trees, claims without a verdict; and note what people did by plain git.

    A git that outlived its owner is waited for, up to `patience` seconds.
    """
    refs.clean(session.repo.commondir)
    object_buffer.clean(session.repo.commondir / "objects")
    worktree.recover(session.repo, wait=patience)
    rest = landing.finish(session.queue.recover(), session, tell)
    left = [claim for claim in rest if not claim.held]
    # Of many in hand none is known to be to blame for a death; of one alone the next one tells.
    fresh = [claim for claim in left if not claim.deaths]
    for some in filter(None, [fresh, *([claim] for claim in left if claim.deaths)]):
        if session.stop.is_set:
            return
        session.queue.attempt(some)
        if some[0].deaths >= MOST_DEATHS and some[0].intended is None:
            some = [replace(some[0], problem=POISON)]
        work(some, session, tell)


def turn(session: Session, tell: Tell) -> int:
    """Give a verdict to the responses that wait, one group of them; how many there were."""
    claims = session.desk.answered(session) if session.desk else []
    claims += with_ids(session.queue.claim(1 if session.ask else _most(session)), session)
    work(claims, session, tell)
    return len(claims)


def _most(session: Session) -> int:
    """Return how many responses share a group: the members of a train, where hooks check one."""
    return session.config.train.batches if session.hooks.joined else GROUP


def look_at_held(session: Session, tell: Tell) -> int:
    """Decide again on the batches that wait for something; return how many of them went on."""
    claims = [claim for claim in session.queue.held() if session.queue.serves(claim)]
    if claims and session.branches.away:
        try:
            session.branches.refresh()
        except Unreachable:  # what is held for that stays so
            return 0
    return work([claim for claim in claims if _may_go_on(claim, session)], session, tell)


# When this process last tried the batches that wait for something to be mended.
_looked: WeakKeyDictionary[Repository, dict[str, float]] = WeakKeyDictionary()


def _may_go_on(claim: Claim, session: Session) -> bool:
    """Return True unless the batch waits for something that is as it was.

    What waits for the machine or the repository to be mended is tried by each process once, then
    every `hold_seconds`; what processes died of waits for a person.
    """
    report = session.queue.load(claim.id) if claim.id else None
    why = waits_for_mending(report) if report and report.state == "held" else None
    if report is None or why in (None, CRASHED):
        return why is None
    if why == CannotSign.code:
        return not session.signer.resting
    if why == TargetRed.code:
        tip = session.branches.tip(report.target or "")
        return bool(tip and tip[:12] not in report.problems[-1].message)
    looked = _looked.setdefault(session.repo, {})
    rested = monotonic() - looked.get(claim.token, -inf) >= session.config.queue.hold_seconds
    if rested:
        looked[claim.token] = monotonic()
    return rested


_MENDED_BY_A_PERSON = (
    ObjectDamaged.code,
    CannotFollow.code,
    CRASHED,
    CannotSign.code,
    TargetRed.code,
)


def waits_for_mending(report: Report) -> str | None:
    """Return the code of the fault that keeps a batch held, if any.

    A person has to mend it: objects that cannot be read, a work tree that cannot follow, processes
    that died, a key that does not sign, a target that fails its own checks.
    """
    last = report.problems[-1].code if report.problems else None
    return last if last in _MENDED_BY_A_PERSON else None


def work(claims: Iterable[Claim], session: Session, tell: Tell) -> int:
    """Give every claim its verdict, in order; return how many got one that ends it.

    Each batch is decided on the branches as those before it leave them, and a group lands at once.
    What was built on a batch that a hook refused is decided again without that.  So is what others
    moved the branch away from, a half at a time, which lands sooner.
    Once `session.stop` is set, what is decided on lands, and the next start does the rest.
    """
    session.check_that_it_decides()
    left = deque(claims)
    if left:
        with suppress(Unreachable):  # each is held for that
            session.branches.refresh(elsewhere.lanes(left, session))
        elsewhere.catch_up(session)
    most = 1 if session.ask else _most(session)
    room, ended, tries = most, 0, Counter[str]()
    while left and not session.stop.is_set:
        if not (left[0].choice or session.ask):  # no person waits for it
            _rest(session)
        group, found = _gather(left, room, session, tries, tell)
        again, lost, done = _settle(group, session, tell, tries)
        ended += found + done
        tries.update({one.claim.token: one.claim.token in lost for one in again})
        room = max(1, len(lost) // 2) if lost else most
        if again and not lost:  # the hooks refused one, and those behind it are joined anew
            room = min(most, 2 * (done + 1))
        left.extendleft(decision.claim for decision in reversed(again))
    return ended


def _rest(session: Session) -> None:
    """Wait while checked-out branches rest; who decides before that sees them move meanwhile."""
    while not session.stop.is_set and (rest := session.branches.rest()):
        session.pulse()
        sleep(min(rest, _PULSE_SECONDS))


def _lands_before(group: Sequence[Decision], decision: Decision) -> bool:
    """Return true if the decision depends on what the group has not landed yet."""
    dirty = any(problem.code == "worktree.dirty" for problem in decision.problems)
    waits = {p.conflicts_with.batch for p in decision.problems if p.conflicts_with}
    named = {decision.header.retries, decision.header.id} - {None}
    if not (dirty or waits or named or decision.duplicate_of):
        return False
    return any(
        (dirty and one.follows and one.target == decision.target)
        or (decision.state == "held" and one.state == "proposed" and one.id in waits)
        or one.id == decision.duplicate_of
        or not named.isdisjoint((one.id, one.header.id))
        for one in group
    )


def _gather(
    left: deque[Claim], room: int, session: Session, tries: Counter[str], tell: Tell
) -> tuple[list[Decision], int]:
    """Decide on claims until they have to land; return how many were found landed, too.

    They share their flushes, so they are gathered for a time; `room` is for so many.
    """
    group, tips, ended = list[Decision](), Tips(session, tries), 0
    seen = set[str]()
    seconds = inf if session.hooks.joined else max(_GROUP_SECONDS, session.branches.seconds)
    ends = monotonic() + seconds
    while left and not session.stop.is_set and len(group) < room:
        claim = left[0]
        # The second of the same bytes is recognised by the report of the first.
        if group and (claim.source.sha256 in seen or monotonic() > ends):
            break
        if claim.request and session.desk:
            session.desk.take(claim, session)
        elif landing.landed_since([claim], session, tell):
            ended += 1
        else:
            decision = _decide(claim, session, tips)
            if tries[claim.token] >= _TRIES:
                decision = _given_up(decision)
            if _lands_before(group, decision):
                break  # it is decided again once they have
            if decision.state == "held" and claim.held:
                landing.hold_on(decision, session)
            else:
                group.append(_checked(decision, session, tips))
                seen.add(claim.source.sha256)
        left.popleft()
    return group, ended


def _decide(claim: Claim, session: Session, tips: Tips) -> Decision:
    if session.ask and claim.choice is None:  # once, however often it is decided on
        claim = replace(claim, choice=to_builtins(session.ask(claim) or AS_SENT))
    session.pulse()
    with session.doing(claim.id or stem_id(claim.source.name), "deciding"):
        return process(claim, session, tips, recorded(claim) or AS_SENT)


def _checked(decision: Decision, session: Session, tips: Tips) -> Decision:
    if decision.state == "applied":
        (decision,) = presubmit.check([decision], session, session.hooks.without_joined)
    if decision.state == "applied" and decision.commit:
        tips.move(decision.target, decision.commit)
    return decision


def _settle(
    group: Sequence[Decision], session: Session, tell: Tell, tries: Counter[str]
) -> tuple[list[Decision], list[str], int]:
    """Have a group checked, and land what passes.

    Return what to decide again, the tokens of those whose branch others moved, and how many ended.
    """
    ended, lost = 0, list[str]()
    open = {decision.claim.token: decision for decision in group}
    for portion in _cleared(group, session, tries):
        warned = overlaps.warned(portion, session, looks=False)
        answers = [replace(one, review=reports.answer(one, session)) for one in warned]
        landed, again = landing.land(answers, session)
        # What moves nothing may be of a batch that came with the push which this one met.
        idle = [one.claim for one in landed if not one.commit]
        gone = landing.landed_since(idle, session, tell)
        done = [it for it in landed if it.claim.token not in gone]
        verdicts = [(it.claim, it.report, it.header) for it in done]
        ended += len(gone) + landing.publish(verdicts, session, tell)
        came = {one.id: one.commit for one in done if one.state == "proposed" and one.commit}
        overlaps.refresh(session, came=came)
        for one in portion:
            del open[one.claim.token]
        lost += [one.claim.token for one in again]
        open |= {one.claim.token: one for one in again}
        if lost:
            break
    return [it for it in group if it.claim.token in open], lost, ended


def _cleared(
    group: Sequence[Decision], session: Session, tries: Counter[str]
) -> Iterator[list[Decision]]:
    """Yield what may land of a group, as the hooks clear it; the rest is to be decided again."""
    chains: dict[str, list[Decision]] = {}
    for decision in group if session.hooks.joined else ():
        if decision.state == "applied" and decision.commit:
            chains.setdefault(decision.target, []).append(decision)
    members = {one.commit for chain in chains.values() for one in chain}
    # One that a hook's fix made a proposal of was not seen by all hooks.
    waits = [replace(one, hooks=()) for one in group if one.state == "proposed"]
    checked = {one.claim.token: one for one in presubmit.check(waits, session)}
    rest = [checked.get(one.claim.token, one) for one in group if one.commit not in members]
    if first := [one for one in rest if one.tip not in members]:
        yield first
    for chain in chains.values():
        alone = len(chain) == 1 and chain[0].claim.token not in tries
        left = deque(chain)
        try:
            for part in Search(chain, session).cleared(alone=alone):
                commits = {left.popleft().commit for _ in part} if part[0].lands else set()
                yield [*part, *(one for one in rest if one.tip in commits)]
        except TargetRed as red:
            yield [one.held(red.message, red.hint, red.code) for one in left]


def _given_up(decision: Decision) -> Decision:
    if not decision.commit:
        return decision
    what = f"{decision.target}, or a work tree on it,"
    if decision.state == "proposed":
        what = records.branch(decision.id)
    return decision.held(
        f"{what} was not as it had been when the change was decided on, {_TRIES} times in a row",
        "nothing to send: the change lands by itself once the branch is quieter",
    )
