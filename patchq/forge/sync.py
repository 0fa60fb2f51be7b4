"""A round: read both sides, work out the difference, and do it, one action after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from time import sleep

from patchq.forge import lines, step, words
from patchq.forge.contract import Project, PullRequest
from patchq.forge.reading import ForgeReading, rules_of
from patchq.forge.step import LANDED, Action, Proposal
from patchq.forge.wire import Absent, Rejected
from patchq.gate.api import Gate, deciding, requests
from patchq.gate.api.cluster import feeder_name
from patchq.gate.api.requests import ShownRequest
from patchq.gate.errors import Busy, Fault
from patchq.gate.git import records, refs
from patchq.gate.git.branches.shown import Copies
from patchq.gate.land import reports
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.lock import lock_owner
from patchq.gate.queue.store import LOCKS
from patchq.gate.report.schema import CommittedReport, has_commit
from patchq.gate.review import errands, restack

_SETTLE_SECONDS = 1.0  # a forge needs about so long to see that a request is merged
_MOST_QUIET = 20  # rounds that look at nothing more, as nothing changed
_MOST_ROUNDS = 8  # in a row, as long as each decides something here
_DECIDES = (
    step.AcceptApproved,
    step.SendBackReviewed,
    step.DiscardClosed,
    step.ReopenDiscarded,
    step.AdoptPush,
)
Say = Callable[[str], None]


class Sync:
    """The rounds of one process with one forge; each action is given to `say`."""

    def __init__(self, forge: Project, me: str, say: Say, *, dry_run: bool = False) -> None:
        self._forge, self._me, self._say, self._dry_run = forge, me, say, dry_run
        self._reading = ForgeReading(forge)
        self._reported: set[str] = set()
        self._seen: object = None
        self._quiet = 0

    def rounds(self, gate: Gate) -> int:
        """Make rounds as long as one decides something here; return the number of actions."""
        count = 0
        for _ in range(_MOST_ROUNDS):
            done = self.round(gate)
            count += len(done)
            decided = any(isinstance(one, _DECIDES) for one in done)
            if self._dry_run or not (decided or self._reading.waits):
                break
            if not decided:
                sleep(_SETTLE_SECONDS)
        return count

    def round(self, gate: Gate) -> list[Action]:
        """Make one round; return what was done, or in a dry run is to be done."""
        session = gate.session(targeted=False)
        session.branches.refresh()
        if lock_owner(session.queue_root) is None:
            restack.settle(session)
        changed, sign = self._reading.refresh(), _sign(session)
        self._quiet = 0 if changed or sign != self._seen else self._quiet + 1
        if 0 < self._quiet < _MOST_QUIET:
            return []
        made = _Round(session, self._forge, self._reading, self._me, self._tell)
        done = made.run(self._dry_run)
        # What was just done, or waits for the forge, is looked at once more.
        self._seen = None if done or self._reading.waits else sign
        return done

    def _tell(self, text: str, once: bool) -> None:
        if not once or text not in self._reported:
            self._say(text)
        if once:
            self._reported.add(text)


class _Round:
    """One round; the copies are as they were at its start."""

    def __init__(
        self,
        session: Session,
        forge: Project,
        reading: ForgeReading,
        me: str,
        tell: Callable[[str, bool], None],
    ) -> None:
        section = session.config.forge
        self._session, self._forge, self._reading, self._tell = session, forge, reading, tell
        self._rules = rules_of(forge, section, me)
        seconds = session.config.landing.push_timeout_seconds
        self._copies = Copies(session.repo, section.remote, seconds)
        self._lines = lines.Lines(session, self._copies)
        self._queue = feeder_name(session.queue_root)
        self._shown = dict[str, ShownRequest]()

    def run(self, dry_run: bool) -> list[Action]:
        """Carry out what is to be done; in a dry run say it alone."""
        done = list[Action]()
        for action in self._actions():
            self._tell(str(action), False)
            done.append(action)
            if not dry_run:
                self._try(action)
        if not dry_run:
            requests.keep(self._session, self._shown)
        return done

    # ------------------------------------------------------------ what is to be done

    def _actions(self) -> Iterator[Action]:
        """Yield actions; each is carried out before the next one is worked out."""
        session = self._session
        waiting = [
            report
            for report in history.waiting(session)
            if history.observe(session, report).state == "proposed"
        ]
        roots = {self._lines.root(report) for report in waiting}
        for report in depends.in_order(waiting):
            if has_commit(report):
                yield from self._readable(self._of_proposal(report))
        for request in list(self._reading.requests.values()):
            if _root(request) not in roots:
                yield from self._readable(self._of_decided(request))
        yield from self._left_over(roots)

    def _readable(self, actions: Iterator[Action]) -> Iterator[Action]:
        """Yield the actions, as far as the forge shows what they follow from."""
        try:
            yield from actions
        except (Absent, Rejected) as fault:
            self._tell(fault.message, True)

    def _of_proposal(self, report: CommittedReport) -> Iterator[Action]:
        urls = {_root(one): one.url for one in self._reading.requests.values() if one.is_open}
        proposal = self._lines.proposal(report, self._queue, urls)
        request = self._reading.request_of(records.branch(proposal.copy.root))
        mark = words.mark_in(request.body) if request else None
        if request and mark and mark.queue != self._queue:
            self._tell(f"#{request.number} belongs to another queue: it is left alone", True)
            return
        talk = self._reading.talk(request)
        for action in step.step(proposal, request, talk, self._rules):
            yield action
            if isinstance(action, _DECIDES):
                return
        request = self._reading.request_of(records.branch(proposal.copy.root))
        if request and request.is_open:
            yield from self._status(proposal)
            approved = step.approvals(proposal, request, talk, self._rules)
            self._shown[report.id] = ShownRequest(request.number, request.url, tuple(approved))

    def _status(self, proposal: Proposal) -> Iterator[Action]:
        head = self._copies.there(proposal.copy.root)
        wanted = words.status(proposal.report)
        if head and self._reading.status(head) != wanted:
            yield step.SetStatus(head, wanted)

    def _of_decided(self, request: PullRequest) -> Iterator[Action]:
        """Yield what is to be done about a request without a proposal."""
        session, mark = self._session, words.mark_in(request.body)
        if mark is None or mark.queue != self._queue:
            return
        id, _ = depends.standing(session, mark.id)
        report = session.queue.load(id)
        if report is None or report.state in ("proposed", "held", "rejected"):
            return
        tip = session.branches.tip(report.target or "")
        merged = tip is not None and session.repo.is_ancestor(request.head, tip)
        if merged and request.is_open and report.state in LANDED:
            merged = self._reading.may_merge_itself(request.number)
        yield from step.ended(request, report, mark, merged)

    def _left_over(self, roots: Collection[str]) -> Iterator[Action]:
        """Yield the removal of copies whose changes are decided."""
        open = {_root(one) for one in self._reading.requests.values() if one.is_open}
        for root in self._copies.published().keys() - roots - open:
            there = self._copies.there(root)
            if there is None:
                self._copies.forget(root)
            elif there in self._copies.pushed(root):
                state = depends.standing(self._session, root)[1]
                if state in LANDED and self._reading.status(there) != words.landed(""):
                    yield step.SetStatus(there, words.landed(""))
                yield step.RemoveCopy(root)

    # ------------------------------------------------------------ doing it

    def _try(self, action: Action) -> None:
        """Carry an action out; a failure of it alone is reported, and tried again later."""
        try:
            self._do(action)
        except Busy:
            raise
        except (Absent, Rejected) as fault:
            self._tell(f"cannot {action}: {fault.message}", True)
        except Fault as fault:
            if not isinstance(action, _DECIDES):
                raise
            self._answer(action, fault.message)

    def _do(self, action: Action) -> None:
        forge, reading = self._forge, self._reading
        match action:
            case step.PushCopy(root, commit):
                self._push(root, commit)
            case step.RemoveCopy(root):
                self._push(root, None)
            case step.OpenRequest(root, base, title, body):
                if made := forge.open(records.branch(root), base, title, body):
                    reading.add(made)
            case step.EditRequest(number, what):
                forge.edit(number, **what)
            case step.AddNote(number, text, key):
                known = reading.talk(reading.requests.get(number)).notes
                if not any(words.has_signed(one.text, key) for one in known):
                    reading.wrote(number)
                    forge.note(number, words.signed(text, key))
            case step.AddReply(number, thread, text, key):
                reading.wrote(number)
                forge.reply(number, thread, words.signed(text, key))
            case step.ResolveThread(number, thread):
                reading.wrote(number)
                forge.resolve(thread)
            case step.SetStatus(commit, status):
                reading.wrote(sha=commit)
                forge.set_status(commit, status)
            case _:
                self._decide(action)

    def _push(self, root: str, commit: str | None) -> None:
        if why := self._copies.push({root: commit}, self._session.identity()):
            self._tell(f"{records.branch(root)} stays as it is on the remote: {why}", True)

    def _decide(self, action: Action) -> None:
        """Carry out here what people decided there."""
        session = self._session
        match action:
            case step.AdoptPush(id, commit):
                name = records.BRANCHES + id
                now, who = session.repo.ref_target(name), session.identity()
                refs.move(session.repo, name, now, commit, "patchq: pushed by a person", who)
                reports.reconcile(session, [id])
            case step.AcceptApproved(id, _, by):
                alone = lock_owner(session.queue_root) is None
                seen = {id: session.branches.tip(records.branch(id)) or ""}
                self._errand(action, errands.Accept((id,), seen=seen, wait=alone, by=by))
            case step.SendBackReviewed(id, _, by, remarks):
                commit = session.branches.tip(records.branch(id)) or ""
                drafts = tuple(lines.drafts(session, commit, remarks))
                self._errand(action, errands.SendBack(id, drafts, by, commit))
            case step.DiscardClosed(id, number):
                by = self._forge.closed_by(number)
                why = f"closed on the forge{f' by {by}' if by else ''}"
                self._errand(action, errands.Discard(id, why))
            case step.ReopenDiscarded(id):
                self._errand(action, errands.TakeBack(id))

    def _errand(self, action: Action, errand: errands.Errand) -> None:
        decided = deciding.decide(self._session, errand)
        if decided.problems:
            self._answer(action, decided.problems[0].message)

    def _answer(self, action: Action, why: str) -> None:
        """Say on the request, once, why a decision was not carried out."""
        self._tell(f"cannot {action}: {why}", True)
        if isinstance(
            action,
            step.AcceptApproved | step.SendBackReviewed | step.DiscardClosed | step.ReopenDiscarded,
        ):
            key = f"refused {action.id} {words.digest(str(action) + why)}"
            text = f"patchq could not {words.code(str(action))}: {words.code(why)}"
            self._try(step.AddNote(action.number, text, key))


def _sign(session: Session) -> object:
    """Return a value that changes with anything that a round looks at here."""
    repo, remote = session.repo, session.config.forge.remote
    places = (records.WAITING, records.BOARDED, f"{records.REMOTES}{remote}/", records.BRANCHES)
    stamp = (session.queue_root / LOCKS).stat().st_mtime_ns
    return stamp, *(repo.refs(place) for place in places)


def _root(request: PullRequest) -> str:
    return request.branch.removeprefix(records.branch(""))
