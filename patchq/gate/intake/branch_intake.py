"""Branches that the configuration names (`branches`): each is handed in when it moves.

For agents that know nothing of patchq and commit.  A branch whose tip is new is looked at: while
its work tree has changes that are not committed, is in the middle of a rebase, or its last response
is still in the inbox, it waits; then it becomes a response like one of `submit --branch`, or is
turned away with a reason.  A tip is never taken twice: what is taken is noted, durably, before the
response is dropped, with the response's digest, by which the queue tells whether it has arrived.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from math import inf
from time import monotonic

from msgspec.structs import asdict, replace

from patchq.gate.errors import Busy, DiskFault, Fault, RepositoryFault, UsageError
from patchq.gate.git.checkout import busy
from patchq.gate.git.repository import Repository
from patchq.gate.intake import branches, commits
from patchq.gate.intake.branches import Head
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import store
from patchq.gate.queue.shelf import Troubles
from patchq.gate.report.schema import WAITING
from patchq.gate.report.secrecy import batch_id, file_name

_LOOK_SECONDS = 1.0
_PIECE_SECONDS = 0.2  # time for branches before the inbox is looked at
_MOST_TRIES = 100

_LOG = logging.getLogger("patchq")


class BranchIntake:
    """Hands in what moved.  For the thread that empties the inbox, and holds its lock."""

    def __init__(self) -> None:
        self._known: dict[str, Head] | None = None
        self._trouble: str | None = None
        self._next = inf

    @property
    def pause(self) -> float:
        """Seconds until `turn` is due again."""
        return max(self._next - monotonic(), 0.0)

    def turn(self, session: Session) -> None:
        """Look at the branches if it is time; what takes long goes on at the next turn."""
        began = monotonic()
        if not session.config.branches:
            self._next = inf
        elif self._next == inf or began >= self._next:
            over = self.look(session, _PIECE_SECONDS)
            spent = monotonic() - began
            self._next = began + spent + (max(_LOOK_SECONDS, 9 * spent) if over else spent)

    def look(self, session: Session, seconds: float = inf) -> bool:
        """Hand in the branches that moved; False if time was up before all were looked at."""
        until = monotonic() + seconds
        if self._known is None:
            self._known = branches.known(session.queue_root)
        try:
            tips = branches.matching(session)
        except RepositoryFault as fault:  # a ref that cannot be read is not the queue's end
            self._note_trouble(session, fault)
            return True
        self._note_trouble(session, None)
        for name in self._known.keys() - tips.keys():
            self._forget(session, name, tips)
        heads = {name: self._known.get(name, Head()) for name in tips}
        for name in sorted(tips, key=lambda name: heads[name].waits != ""):  # new ones first
            head, tip = heads[name], tips[name]
            if head.tip == tip and (head.why or self._has_come(session, head)):
                continue
            if monotonic() > until:
                return False
            session.pulse()
            self._take(session, name, tip, head)
        return True

    def _note_trouble(self, session: Session, fault: Fault | None) -> None:
        message = fault.message if fault else ""
        if message != self._trouble:
            troubles, self._trouble = Troubles(session.queue_root), message
            if fault:
                troubles.note("branches", f"no branch is taken: {message}", fault.hint or "")
            else:
                troubles.over("branches")

    def _forget(self, session: Session, name: str, tips: Mapping[str, str]) -> None:
        """Forget a branch that is gone; one that was renamed goes on under its new name.

        It is remembered while its batch waits: one of this name that comes back takes its place.
        """
        known = self._known or {}
        head = known[name]
        new = (other for other, tip in tips.items() if tip == head.tip and other not in known)
        if head.source and (renamed := next(new, None)):
            _LOG.info("the branch %s goes on as %s", name, renamed)
            self._note(session, renamed, head)
        elif report := branches.last(session, head):
            if report.state in WAITING:
                return
        elif self._is_in_inbox(session, head):
            return
        self._note(session, name, None)

    def _has_come(self, session: Session, head: Head) -> bool:
        """Return True if the queue has the last response: a crash, or a person, may keep it out."""
        return bool(session.queue.by_source(head.source)) or self._is_in_inbox(session, head)

    def _is_in_inbox(self, session: Session, head: Head) -> bool:
        return bool(head.file) and (session.queue_root / "inbox" / head.file).exists()

    def _take(self, session: Session, name: str, tip: str, head: Head) -> None:
        """Hand in the branch, or note why not."""
        try:
            if self._is_in_inbox(session, head) and not session.queue.by_source(head.source):
                raise Busy("its last response is in the inbox", "that has its verdict")
            self._hand_in(session, name, tip, head)
        except UsageError as refusal:
            _LOG.warning("the branch %s is not taken: %s", name, refusal.message)
            why, cure = refusal.message, refusal.hint or ""
            self._note(
                session, name, replace(head, tip=tip, why=why, cure=cure, waits="", until="")
            )
        except DiskFault:
            raise
        except Fault as fault:  # of this branch, or of the moment: it waits
            self._note(session, name, replace(head, waits=fault.message, until=fault.hint or ""))

    def _hand_in(self, session: Session, name: str, tip: str, head: Head) -> None:
        repo, id = session.repo, batch_id(name)
        if repo.branch_tip(name) != tip:
            raise Busy("it is being moved, or is at no commit", "it is at one")
        _check_ready(repo, name)
        for other, taken in (self._known or {}).items():
            if other != name and taken.tip == tip and taken.source and not taken.why:
                raise UsageError(f"{other} was taken at this very commit", "commit to the branch")
        change = commits.since(repo, session.branches.tip(session.target) or "", tip)
        if not change.commits:
            missing = f"it has no commit that {session.target} has not"
            raise UsageError(missing, "commit to the branch")
        if problem := commits.outsized(session, change):
            raise UsageError(f"{problem.code}: {problem.message}", problem.hint)
        retries = replaces(session, head)
        data = commits.as_response(repo, session.rules, change, {"id": id, "retries": retries})
        most = session.config.limits.response_bytes
        if len(data) > most:
            raise UsageError(
                f"response.too_large: as a response it has {len(data)} bytes, more than "
                f"`limits.response_bytes` ({most})",
                "hand it in in parts, with `patchq submit --range`",
            )
        file = file_name(f"{id}.{tip[:12]}.md")
        taken = Head(tip, sha256(data).hexdigest(), file, retries)
        self._note(session, name, taken)
        if (dropped := session.queue.submit(data, file, flush=True)) != file:
            self._note(session, name, replace(taken, file=dropped))
        _LOG.info("the branch %s is handed in as %s", name, dropped)

    def _note(self, session: Session, name: str, head: Head | None) -> None:
        """Know this of a branch, or nothing any more, from now on and after a crash."""
        known = self._known or {}
        if known.get(name) == head:
            return
        kept = {other: it for other, it in known.items() if other != name}
        if head is not None:
            kept[name] = head
        self._known = kept
        text = json.dumps({name: asdict(head) for name, head in kept.items()})
        if found := store.there(session.queue_root):
            found.remember(branches.HEADS, text)
            found.flush()


def _check_ready(repo: Repository, name: str) -> None:
    """Raise `Busy` while a work tree is busy with the branch."""
    if doing := busy(repo, name):
        raise Busy(f"a work tree is {doing} it", "that is finished or aborted")
    for checkout in commits.uncommitted(repo, name):
        raise Busy(
            f"the work tree {checkout.workdir} has changes that are not committed",
            "they are committed, stashed or ignored",
        )


def replaces(session: Session, head: Head) -> str:
    """Return the batch that the branch's next response supersedes, or an empty string.

    That is its batch that waits, else the one that was refused last.
    """
    report, refused = branches.last(session, head), ""
    if report is None and head.retries:  # the last response never arrived
        report = session.queue.load(head.retries)
    for _ in range(_MOST_TRIES):
        if report is None:
            break
        last, _ = depends.standing(session, report.id, {"superseded"})
        now = session.queue.load(last)
        if now and now.state in WAITING:
            return last
        if report.state == "rejected":
            refused = refused or report.id
        before = report.retry.of
        report = session.queue.load(before) if before else None
    return refused
