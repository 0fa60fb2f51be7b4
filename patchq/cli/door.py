"""The repository and its queue, opened for one call after the other.

A session belongs to one thread at a time, and the umask is the process's, so whoever works holds
the lock; nobody holds it while waiting.  Changed rules are seen by the next call.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock

from patchq.cli import opening, places
from patchq.gate.config.config_file import OWN_FILE
from patchq.gate.config.schema import Limits
from patchq.gate.errors import Fault, RepositoryFault, UsageError
from patchq.gate.pipeline.rules import renewed
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.layout import PUBLIC, REPORT
from patchq.gate.queue.spool import valid
from patchq.gate.queue.store import LOCKS


class Door:
    """The repository of a command's arguments; `UsageError` where there is none, and where it
    cannot be used, unless `lazy`: then each session raises it."""

    def __init__(self, args: Namespace, *, lazy: bool = False) -> None:
        self._args = args
        self._site: places.Location | None = None
        self._lock = Lock()
        self._opened = ExitStack()
        self._session: Session | None = None
        self._seen: object = None
        self._has = (False, False)
        self.response_bytes = Limits().response_bytes
        with suppress(UsageError) if lazy else nullcontext(), self.session() as session:
            self.response_bytes = session.config.limits.response_bytes

    def enter(self, directory: Path) -> None:
        """Go to the repository that the directory is in."""
        with self._lock:
            self.close()
            self._args = Namespace(**{**vars(self._args), "directory": directory})
            self._site = None

    @contextmanager
    def session(self, *, targeted: bool = False, writes: bool = False) -> Iterator[Session]:
        """The session as it is now, for one thread; what only looks makes no queue.  Raises what
        `opening.open_session` raises."""
        with self._lock:
            self._site = self._site or places.find(self._args)
            signs, has = self._signs(self._site), self._has
            if self._session is None or self._seen != signs:
                has = (False, False)
            wanted = (targeted or has[0], writes or has[1])
            if self._session is None or self._seen != signs or wanted != has:
                self.close()
                args = Namespace(**{**vars(self._args), "opened": self._opened})
                self._session = opening.open_session(args, targeted=wanted[0], writes=wanted[1])
                self._seen, self._has = self._signs(self._site), wanted
            try:
                yield self._session
            except Fault:
                raise
            except BaseException:
                self.close()  # what a crash left half done is not used again
                raise

    def close(self) -> None:
        self._session = None
        self._opened.close()

    def pulse(self, *more: str) -> object:
        """Another value when something has happened since, or changed in the folders `more`."""
        root = self.root
        return root and [_stamp(root / name) for name in (LOCKS, *more)]

    def report_sign(self, id: str) -> object:
        """Another value when the report of the batch is another one."""
        root = self.root if valid(id) else None
        return root and [_stamp(root / name / f"{id}{REPORT}") for name in PUBLIC[1:]]

    @property
    def root(self) -> Path | None:
        """Of the queue, once it was opened."""
        return self._session.queue_root if self._session else None

    def _signs(self, site: places.Location) -> object:
        """Return a value that changes when the session is no longer the one that was opened."""
        there, common = self.root is not None and self.root.is_dir(), site.repo.commondir
        if not (common / "HEAD").exists():
            raise RepositoryFault(
                f"there is no repository in {common} any more",
                "put it back, or start the server again where the repository is",
            )
        files = site.file or common / OWN_FILE, common / "config"
        known = self._session and self._session.judged_by
        return [*map(_stamp, files), there, known and renewed(site.repo, known) is known]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
