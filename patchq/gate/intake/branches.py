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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from math import inf
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
_PIECE_SECONDS = 0.2  # time for branches before the inbox is looked at
_MOST_TRIES = 100

_LOG = logging.getLogger("patchq")


class Head(Struct, frozen=True):
    """The record of one branch: the `tip` that was taken, or turned away, last.

    `source` is the digest of the last response that was made of it, `file` the name under which
    that was dropped, and `retries` the batch that it takes the place of.  `why` and `cure` tell why
    the tip was turned away; `waits` and `until` why a later one cannot be taken yet.
    """

    tip: str = ""
    source: str = ""
    file: str = ""
    retries: str = ""
    why: str = ""
    cure: str = ""
    waits: str = ""
    until: str = ""


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
        state, why, cure = "taken", "", ""
        if name not in tips:
            state, why = "gone", "there is no such branch any more; its change stays"
        elif head.tip != tips[name]:
            state, why, cure = "waits", head.waits or "not looked at yet", head.until
        elif head.why:
            state, why, cure = "turned away", head.why, head.cure
        yield {
            "branch": name,
            "tip": tips.get(name),
            "state": state,
            "why": why or None,
            "cure": cure or None,
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
        self._next = inf

    @property
    def pause(self) -> float:
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
        """Hand in the branches that moved; return False if time was up before."""
        until = monotonic() + seconds
        self._known = known(session.queue_root)
        try:
            tips = matching(session)
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
        """Forget a branch that is gone, or keep it under its new name.

        It is remembered while its batch waits: one of this name that comes back takes its place.
        """
        head = self._known[name]
        new = (it for it, tip in tips.items() if tip == head.tip and it not in self._known)
        if head.source and (renamed := next(new, None)):
            _LOG.info("the branch %s goes on as %s", name, renamed)
            self._note(session, renamed, head)
        elif report := last(session, head):
            if report.state in WAITING:
                return
        elif self._is_in_inbox(session, head):
            return
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
        latest, _ = depends.standing(session, report.id, {"superseded"})
        now = session.queue.load(latest)
        if now and now.state in WAITING:
            return latest
        if report.state == "rejected":
            refused = refused or report.id
        before = report.retry.of
        report = session.queue.load(before) if before else None
    return refused
