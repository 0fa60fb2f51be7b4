"""A gate that stays open for one call after the other, of several threads.

A session belongs to one thread at a time, and the umask is the process's, so whoever works holds
the lock, and releases it while waiting.  The next call sees changed rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock

from msgspec.structs import replace

from patchq.gate.api import Gate
from patchq.gate.api.location import Options
from patchq.gate.config.config_file import OPERATORS_FILE
from patchq.gate.config.schema import Limits
from patchq.gate.errors import Fault, RepositoryFault, UsageError
from patchq.gate.pipeline.rules import renewed


class SharedGate:
    """The gate of a repository; a `lazy` one raises what keeps it from opening at each call."""

    def __init__(self, options: Options, *, lazy: bool = False) -> None:
        self._gate = Gate(options)
        self._lock = Lock()
        self._seen: object = None
        self.response_bytes = Limits().response_bytes
        with suppress(UsageError) if lazy else nullcontext(), self.gate() as gate:
            self.response_bytes = gate.context().config.limits.response_bytes

    def enter(self, directory: Path) -> None:
        """Go to the repository that holds the directory; raises `UsageError` for none."""
        gate = Gate(replace(self._gate.options, directory=directory))
        _ = gate.location  # raises where there is none
        with self._lock:
            self._gate.close()
            self._gate = gate

    @contextmanager
    def gate(self, *, targeted: bool = False, writes: bool = False) -> Iterator[Gate]:
        """Yield the gate with an open session, for one thread."""
        with self._lock:
            if self._seen != self._signs():
                self._gate.close()
            try:
                self._gate.session(targeted=targeted, writes=writes)
                self._seen = self._signs()
                yield self._gate
            except Fault:
                raise
            except BaseException:
                self._gate.close()  # what a crash left half done is not used again
                raise

    def close(self) -> None:
        self._gate.close()

    @property
    def root(self) -> Path | None:
        """The queue's directory, once it was opened."""
        return self._gate.root

    def _signs(self) -> object:
        """Return a value that changes when the session is no longer the one that was opened."""
        location, known = self._gate.location, self._gate.rules
        common, there = location.repo.commondir, self.root is not None and self.root.is_dir()
        if not (common / "HEAD").exists():
            raise RepositoryFault(
                f"there is no repository in {common} any more",
                "put it back, or start the server again where the repository is",
            )
        files = self._gate.options.config or common / OPERATORS_FILE, common / "config"
        return [*map(stamp, files), there, known and renewed(location.repo, known) is known]


def stamp(path: Path) -> tuple[int, int, int] | None:
    """Return another value when a file changes; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
