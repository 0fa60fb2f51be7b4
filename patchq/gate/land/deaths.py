"""Whose death it was, when a process ended before a response had its verdict.

Processes are killed by people, by the kernel and by the power, and mostly while they do something
harmless.  So a response is to blame only if deciding on it kills a process whose parent lives: what
a dead process had in hand undecided is decided in a child first.  Whatever else ends processes
again and again with one batch in hand, and nothing else, holds it, and the others go on.

Of many in hand none is known to be it.  So those with which one more process died are taken a
quarter at a time by the next one: one that is to blame is soon by itself, and where processes are
killed for whatever reason, what they have in hand becomes so little that they end it in between.
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.gate.errors import CRASHED, DiskFault, disk_fault
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.session import AS_SENT, Session, Tips, recorded
from patchq.gate.queue import Claim
from patchq.gate.queue.spool import disk_faults

MOST = 5
"""So many processes may end with one batch alone in hand; then it is held, and the others go on."""
TRIES = "tries"
"""Where the queue has a file for each claim with which processes died that had recovered it: a byte
for each of them says how many claims it had in hand."""
_FEWER = 4
_MOST_SAID = 255
_OWN = {signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSYS}
"""What a process does to itself.  The others come from outside: SIGKILL from a person, or from the
kernel that is short of memory, SIGBUS from a disk that cannot give what is mapped of it."""
_PDEATHSIG = 1
_PULSE_SECONDS = 0.1
LONGEST_SECONDS = 120
"""So long a child may take for one response.  What it forked from had other threads: it may hang
for what they had in hand, as for a disk that does not answer."""
_HINT = (
    "nothing to send: the batch is tried again at each start and every `queue.hold_seconds`; "
    "`patchq retry` tries it at once, `patchq discard` ends it"
)


def portions(root: Path, claims: Sequence[Claim]) -> Iterator[list[Claim]]:
    """The claims in their order, in such groups as are to be in hand together."""
    group, most = list[Claim](), inf
    for claim in claims:
        told = _told(root, claim.token)
        own = max(1, told[-1] // _FEWER) if told else inf
        if group and len(group) >= min(most, own):
            yield group
            group, most = [], inf
        group.append(claim)
        most = min(most, own)
    if group:
        yield group


@contextmanager
def counted(root: Path, claims: Sequence[Claim]) -> Iterator[Mapping[str, int]]:
    """How many processes died with each of the claims (by token) alone in hand; this one, which has
    all of them, is counted in on disk until the end of the block.  A fault is no death."""
    told = {claim.token: _told(root, claim.token) for claim in claims}
    for token, before in told.items():
        _tell(root, token, before + bytes([min(len(claims), _MOST_SAID)]))
    try:
        yield {token: _alone_in(before) for token, before in told.items()}
    finally:
        for claim in claims:
            (root / TRIES / claim.token).unlink(missing_ok=True)


@disk_faults
def _tell(root: Path, token: str, told: bytes) -> None:
    (root / TRIES).mkdir(exist_ok=True)
    (root / TRIES / token).write_bytes(told)


def _told(root: Path, token: str) -> bytes:
    mark = root / TRIES / token
    return mark.read_bytes() if mark.exists() else b""


def _alone_in(told: bytes) -> int:
    return told.count(1)


def tries(root: Path, token: str) -> int:
    """How many processes died with the claim alone in hand."""
    return _alone_in(_told(root, token))


@disk_faults
def forget_others(root: Path, claims: Iterable[Claim]) -> None:
    """Remove the counts of claims that have their verdict: their process died while it landed."""
    folder, tokens = root / TRIES, {claim.token for claim in claims}
    for mark in folder.iterdir() if folder.is_dir() else ():
        if mark.name not in tokens:
            mark.unlink()


def judged(claims: Sequence[Claim], session: Session, died: Mapping[str, int]) -> list[Claim]:
    """The claims of dead processes, those that are to be refused or held for it with the problem.

    What has an intended verdict was decided before its process died.
    """
    undecided = [claim for claim in claims if claim.intended is None and not claim.request]
    ends = _tried_out(undecided, _alone(session), session.pulse, lambda: session.stop.is_set)
    judged = []
    for claim in claims:
        problem = None
        if claim.token in ends:
            problem = _ended(ends[claim.token])
        elif max(died.get(claim.token, 0), claim.deaths) >= MOST:
            problem = Problem(
                CRASHED,
                f"{MOST} processes died with this batch in hand, and not since they decided on it",
                _HINT,
                severity="warning",
            )
        judged.append(replace(claim, problem=problem) if problem else claim)
    return judged


def _ended(number: int | None) -> Problem:
    """Why the response is refused, or held, on which a child ended by this signal; None: not."""
    if number is None:
        how = f"did not end within {LONGEST_SECONDS} s"
        message = f"the process that decided on this response alone {how}; nothing was applied"
        return Problem(CRASHED, message, _HINT, severity="warning")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number in _OWN:
        return Problem(
            CRASHED,
            f"deciding on this response ended a process by {name}; nothing was applied",
            "send the changes in another form or in smaller parts, and report the defect with the "
            "response",
        )
    how = f"was ended by {name}" if number else "ended"
    return Problem(
        CRASHED,
        f"the process that decided on this response alone {how}, which tells of the machine and "
        "not of the response: somebody ended it, memory was short, or a disk gave nothing",
        _HINT,
        severity="warning",
    )


def _alone(session: Session) -> Callable[[Claim], object]:
    """Decides as the session does, but asks nobody, makes no commit and keeps nothing."""
    config = session.config
    silent = replace(config, llm=replace(config.llm, correct=False))
    session = replace(session, config=silent, ask=None, desk=None, pulse=lambda: None)

    def decide(claim: Claim) -> object:
        choice = replace(recorded(claim) or AS_SENT, dry_run=True)
        return process(claim, session, Tips(session), choice)

    return decide


def _tried_out(
    claims: Sequence[Claim],
    decide: Callable[[Claim], object],
    pulse: Callable[[], None],
    cut: Callable[[], bool],
) -> dict[str, int | None]:
    """Decide on the claims in children; of each on which one died, its token and the signal (0:
    there was none; None: it did not end).  Those behind a `cut` were not tried."""
    ends: dict[str, int | None] = {}
    left = list(claims)
    while left:
        done, status = _child(left, decide, pulse, cut)
        if cut():
            break
        if done < len(left):
            ended = None if status is None else max(0, -os.waitstatus_to_exitcode(status))
            ends[left[done].token] = ended
        del left[: done + 1]
    return ends


def _child(
    claims: Sequence[Claim],
    decide: Callable[[Claim], object],
    pulse: Callable[[], None],
    cut: Callable[[], bool],
) -> tuple[int, int | None]:
    """How many of the claims a child decided on before it ended, and how it ended, unless it had to
    be ended."""
    try:
        reads, writes = os.pipe()
        pid = os.fork()
    except OSError as error:
        raise disk_fault(error) or DiskFault(f"no process can be started: {error}") from error
    if pid == 0:
        os.close(reads)
        _decide_and_end(claims, decide, writes)
    os.close(writes)
    done, until, ended = 0, monotonic() + LONGEST_SECONDS, False
    try:
        while not ended and not cut() and monotonic() < until:
            pulse()
            if select.select([reads], [], [], _PULSE_SECONDS)[0]:
                ended = not os.read(reads, 1)
                done, until = done + (not ended), monotonic() + LONGEST_SECONDS
    finally:
        if not ended:
            os.kill(pid, signal.SIGKILL)
        os.close(reads)
        _, status = os.waitpid(pid, 0)
    return done, status if ended else None


def _decide_and_end(claims: Sequence[Claim], decide: Callable[[Claim], object], tell: int) -> None:
    """The child: it ends with its parent, and is the first to go when memory is short."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            with suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text("1000")
        logging.disable()
        for claim in claims:
            with suppress(Exception):  # the parent meets it, too, and says it
                decide(claim)
            os.write(tell, b".")
    finally:
        os._exit(0)
