"""A gate that stays open for one call after the other, of several threads.

A session belongs to one thread at a time, and the umask is the process's, so whoever works holds
the lock, and releases it while waiting.  The next call sees changed rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from msgspec.structs import replace

from patchq.gate.api import Gate
from patchq.gate.api.location import Options
from patchq.gate.errors import Fault, UsageError


class SharedGate:
    """The gate of a repository; each call raises what keeps it from opening."""

    def __init__(self, options: Options) -> None:
        self._gate = Gate(options)
        self._lock = Lock()
        self._missing: UsageError | None = None

    def enter(self, directories: Sequence[Path], missing: UsageError) -> bool:
        """Go to the repository of the first directory that is in one; return True if any is.

        Else each call raises `missing`.
        """
        for directory in directories:
            gate = Gate(replace(self._gate.options, directory=directory))
            with suppress(UsageError), self._lock:
                _ = gate.location  # raises where there is none
                self._gate.close()
                self._gate, self._missing = gate, None
                return True
        self._missing = missing
        return False

    @contextmanager
    def gate(self, *, targeted: bool = False, writes: bool = False) -> Iterator[Gate]:
        """Yield the gate with an open session, for one thread."""
        with self._lock:
            if self._missing:
                raise self._missing
            if not self._gate.is_current():
                self._gate.close()
            try:
                self._gate.session(targeted=targeted, writes=writes)
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
