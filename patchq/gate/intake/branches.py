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
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from time import monotonic

from msgspec import Struct
from msgspec.structs import asdict, replace

from patchq.gate.errors import Busy, DiskFault, Fault, RepositoryFault, UsageError
from patchq.gate.git import records
from patchq.gate.git.checkout import busy
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import store
from patchq.gate.queue.shelf import Troubles
from patchq.gate.report.schema import WAITING, Report
from patchq.gate.report.secrecy import batch_id, file_name

HEADS = "heads"  # the key by which the store keeps what was taken
_LOOK_SECONDS = 1.0
_MOST_TRIES = 100

_LOG = logging.getLogger("patchq")


class Head(Struct, frozen=True):
    """The record of one branch: the `tip` that was taken, or turned away, last.

    `source` is the digest of the last response that was made of it, `file` the name under which
    that was dropped, and `retries` the batch that it takes the place of.  `why` and `cure` tell why
    the tip was turned away, or a later one cannot be taken yet.
    """

    tip: str = ""
    source: str = ""
    file: str = ""
    retries: str = ""
    why: str = ""
    cure: str = ""


def known(root: Path) -> dict[str, Head]:
    """Return the queue's records of branches, by their names."""
    try:
        found = store.there(root)
        kept = found.recall(HEADS) if found else None
        return {name: Head(**head) for name, head in json.loads(kept or "{}").items()}
    except (Fault, ValueError, TypeError, AttributeError):
        return {}


def matching(context: RepoContext) -> dict[str, str]:
    """Return the tips of the branches that are taken when they move, by name.

    Targets, and patchq's own branches, never are.
    """
    config, found = context.config, dict[str, str]()
    kept = config.targets
    for prefix in sorted({_directories(pattern) for pattern in config.branches}):
        for name, tip in context.repo.branches(prefix).items():
            if (
                any(fnmatchcase(name, pattern) for pattern in config.branches)
                and name != context.target
                and not any(fnmatchcase(name, pattern) for pattern in kept)
                and not records.is_branch(name)
            ):
                found[name] = tip
    return found


def _directories(pattern: str) -> str:
    end = next((i for i, letter in enumerate(pattern) if letter in "*?["), len(pattern))
    return pattern[: pattern.rfind("/", 0, end) + 1]


def last(context: RepoContext, head: Head) -> Report | None:
    """Return the report on the last response that was made of a branch."""
    ids = context.queue.by_source(head.source) if head.source else ()
    found = [report for id in reversed(ids) if (report := context.queue.load(id))]
    return next((it for it in found if it.state != "duplicate"), found[0] if found else None)


def standing(context: RepoContext) -> Iterator[dict[str, str | None]]:
    """Yield the state of each configured branch, with its batch, reason and cure.

    `taken`, `waits`, `turned away`, or `gone` while its batch waits.
    """
    heads = known(context.queue_root)
    try:
        tips = matching(context)
    except RepositoryFault:  # of a ref that cannot be read, who takes branches says so
        return
    for name in sorted(heads.keys() | tips.keys()):
        head, report = heads.get(name, Head()), None
        with suppress(Fault):
            report = last(context, head)
        state, why = "taken", head.why
        if name not in tips:
            state, why = "gone", "there is no such branch any more; its change stays"
        elif head.tip != tips[name]:
            state, why = "waits", head.why or "not looked at yet"
        elif head.why:
            state = "turned away"
        yield {
            "branch": name,
            "tip": tips.get(name),
            "state": state,
            "why": why or None,
            "cure": head.cure or None,
            "batch": report.id if report else None,
            "batch_state": report.state if report else None,
        }


# ---------------------------------------------------------------- taking them


class BranchIntake:
    """The intake of branches that moved.

    It is for the thread that empties the inbox, and holds its lock.
    """

    def __init__(self) -> None:
        self._known: dict[str, Head] = {}
        self._trouble: str | None = None
        self._next = 0.0

    def turn(self, session: Session) -> None:
        """Look at the branches if it is time: that may take a tenth of the time."""
        began = monotonic()
        if session.config.branches and began >= self._next:
            self.look(session)
            self._next = monotonic() + max(_LOOK_SECONDS, 9 * (monotonic() - began))

    def look(self, session: Session) -> None:
        """Hand in the branches that moved."""
        self._known = known(session.queue_root)
        try:
            tips = matching(session)
        except RepositoryFault as fault:  # a ref that cannot be read is not the queue's end
            self._note_trouble(session, fault)
            return
        self._note_trouble(session, None)
        for name in self._known.keys() - tips.keys():
            self._forget(session, name)
        for name, tip in sorted(tips.items()):
            head = self._known.get(name, Head())
            if head.tip != tip or not (head.why or self._has_come(session, head)):
                session.pulse()
                self._take(session, name, tip, head)

    def _note_trouble(self, session: Session, fault: Fault | None) -> None:
        message = fault.message if fault else ""
        if message != self._trouble:
            troubles, self._trouble = Troubles(session.queue_root), message
            if fault:
                troubles.note("branches", f"no branch is taken: {message}", fault.hint or "")
            else:
                troubles.over("branches")

    def _forget(self, session: Session, name: str) -> None:
        """Forget a branch that is gone, unless its batch waits: one that comes back replaces it."""
        head = self._known[name]
        report = last(session, head)
        if not (report.state in WAITING if report else self._is_in_inbox(session, head)):
            self._note(session, name, None)

    def _has_come(self, session: Session, head: Head) -> bool:
        """Return True if the queue has the last response.

        A crash, or a person, may keep it out.
        """
        return bool(session.queue.by_source(head.source)) or self._is_in_inbox(session, head)

    def _is_in_inbox(self, session: Session, head: Head) -> bool:
        return bool(head.file) and (session.queue_root / "inbox" / head.file).exists()

    def _take(self, session: Session, name: str, tip: str, head: Head) -> None:
        try:
            if self._is_in_inbox(session, head) and not session.queue.by_source(head.source):
                raise Busy("its last response is in the inbox", "that has its verdict")
            self._hand_in(session, name, tip, head)
        except UsageError as refusal:
            _LOG.warning("the branch %s is not taken: %s", name, refusal.message)
            self._note(session, name, replace(head, tip=tip, **_reason(refusal)))
        except DiskFault:
            raise
        except Fault as fault:  # of this branch, or of the moment: it waits
            before = "" if head.tip == tip else head.tip  # a tip with a reason is not looked at
            self._note(session, name, replace(head, tip=before, **_reason(fault)))

    def _hand_in(self, session: Session, name: str, tip: str, head: Head) -> None:
        repo, id = session.repo, batch_id(name)
        if repo.branch_tip(name) != tip:
            raise Busy("it is being moved, or is at no commit", "it is at one")
        from patchq.gate.intake import commits  # only who hands in commits reads trees

        if doing := busy(repo, name):
            raise Busy(f"a work tree is {doing} it", "that is finished or aborted")
        for checkout in commits.uncommitted(repo, name):
            raise Busy(
                f"the work tree {checkout.workdir} has changes that are not committed",
                "they are committed, stashed or ignored",
            )
        for other, taken in self._known.items():
            if other != name and taken.tip == tip and taken.source and not taken.why:
                raise UsageError(f"{other} was taken at this very commit", "commit to the branch")
        change = commits.since(repo, session.branches.tip(session.target) or "", tip)
        if not change.commits:
            missing = f"it has no commit that {session.target} has not"
            raise UsageError(missing, "commit to the branch")
        retries = replaces(session, head)
        data = commits.as_response(session, change, {"id": id, "retries": retries})
        file = file_name(f"{id}.{tip[:12]}.md")
        taken = Head(tip, sha256(data).hexdigest(), file, retries)
        self._note(session, name, taken)
        if (dropped := session.queue.submit(data, file, flush=True)) != file:
            self._note(session, name, replace(taken, file=dropped))
        _LOG.info("the branch %s is handed in as %s", name, dropped)

    def _note(self, session: Session, name: str, head: Head | None) -> None:
        """Record the state of a branch durably; None removes it."""
        if self._known.get(name) == head:
            return
        kept = {other: it for other, it in self._known.items() if other != name}
        if head is not None:
            kept[name] = head
        self._known = kept
        text = json.dumps({name: asdict(head) for name, head in kept.items()})
        if found := store.there(session.queue_root):
            found.remember(HEADS, text)
            found.flush()


def _reason(fault: Fault) -> dict[str, str]:
    return {"why": fault.message, "cure": fault.hint or ""}


def replaces(session: Session, head: Head) -> str:
    """Return the batch that the branch's next response supersedes, or an empty string.

    That is its batch that waits, else the one that was refused last.
    """
    report, refused = last(session, head), ""
    if report is None and head.retries:  # the last response never arrived
        report = session.queue.load(head.retries)
    for _ in range(_MOST_TRIES):
        if report is None:
            break
        latest, state = depends.standing(session, report.id, {"superseded"})
        if state in WAITING:
            return latest
        if report.state == "rejected":
            refused = refused or report.id
        report = session.queue.load(report.retry.of) if report.retry.of else None
    return refused
