"""Faults, which end a command or wait for a mend; refusals of a response are values.

A fault has two axes: whose it is, and whether the same call may succeed later.  It is decided
at one point, where it is raised, and handled at one point, the command or the daemon loop.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from patchq.core.model.listing import Unreadable

_EXHAUSTED = {
    errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
}  # fmt: skip
_AGAIN = "see to that, then start again; nothing was lost"
# The code of what ended processes again and again, or the process that decided on a response.
CRASHED = "fault.crashed"


class Fault(Exception):
    """Something outside the response went wrong; `code` is one of the `fault.*` codes."""

    code = "fault.repository"
    exit_status = 3
    retryable = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RepositoryFault(Fault):
    """The repository cannot be opened, read or written."""


class ObjectDamaged(RepositoryFault, Unreadable):
    """An object is missing or cannot be read; what does not need it goes on."""

    code = "repository.damaged"


class CannotFollow(RepositoryFault):
    """A work tree with the branch checked out cannot be updated."""

    code = "worktree.unseen"
    exit_status = 1


class ObjectsGone(RepositoryFault):
    """A `git gc --prune=now` took new objects before a ref had them; a retry makes them again."""

    retryable = True


class CannotSign(Fault):
    """A commit could not be signed, so it was not made."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(f"the commit cannot be signed: {why}", hint)


class DiskFault(Fault):
    """The queue's or the repository's file system refuses to work."""

    code = "fault.disk"


def disk_fault(error: OSError) -> DiskFault | None:
    """Return the fault behind an error of the machine, or None.

    It has no space, descriptors or memory left, or a disk is broken: nothing that a response could
    have caused.
    """
    if error.errno is None:  # libgit2's, which opens nothing that a response names
        return DiskFault(str(error), _AGAIN)
    if error.errno not in _EXHAUSTED:
        return None
    where = f": {error.filename!r}" if isinstance(error.filename, str | bytes) else ""
    return DiskFault(f"{error.strerror}{where}", _AGAIN)


def fault_of(error: Exception, hint: str) -> Fault:
    """Return an error as a fault.

    `hint` is for a defect of patchq, whose code is `CRASHED`.
    """
    if isinstance(error, Fault):
        return error
    if isinstance(error, OSError) and (broken := disk_fault(error)):
        return broken
    crash = Fault(f"{type(error).__name__}: {error}", hint)
    crash.code = CRASHED
    return crash


class DatabaseFault(Fault):
    """The queue's database fails, or the connection to it was lost."""

    code = "fault.database"

    def __init__(self, message: str, hint: str | None = None, *, again: bool = True) -> None:
        super().__init__(message, hint)
        self.retryable = again


class Cancelled(Exception):
    """The hook's end is of no interest any more."""


class HookFault(Fault):
    """A hook could not be started."""

    code = "fault.hook"


class Busy(Fault):
    """Another process holds a lock that is released sooner or later."""

    retryable = True


class Unreachable(Busy):
    """The branches' remote is away, or takes nothing from this account.

    What waits for it goes on by itself.
    """


class Declined(Fault):
    """A hook of the remote refused what was pushed; its words are the message."""

    code = "hook.refused"
    exit_status = 1


class InDoubt(Fault):
    """It is unknown if what was pushed has landed; whoever recovers it finds out."""

    code = "fault.in_doubt"
    retryable = True


class LaneLost(Fault):
    """Another process took over the claims of this one, which published nothing."""

    code = "fault.database"
    retryable = True


class UsageError(Fault):
    """The command line or the configuration is wrong; nothing was done."""

    code = "usage"
    exit_status = 2


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """Raise `UsageError` for an import that only an extra of patchq brings."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "patchq":
            raise
        raise UsageError(
            f"a package is not installed: {error}",
            f"pip install 'patchq[{name}]', or `uvx --from 'patchq[all]' patchq`",
        ) from None


class TimeIsUp(Fault):
    """The awaited event has not come within the given time."""

    code = "usage"
    exit_status = 124
    retryable = True


class QueueLocked(Fault):
    """Another instance empties the inbox."""

    code = "usage"
    exit_status = 75
    retryable = True


class Interrupted(BaseException):
    """A person ends the work at once.

    The claims wait for the next start, as after a crash.  It is no `Exception`, so that no handler
    takes it for a defect on the way.
    """
