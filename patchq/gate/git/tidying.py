"""Tidying of the repository after landings, which git's commands do and libgit2 never does.

Git's own housekeeping is asked for; whether it does anything is the user's to say.  The packs of
large groups are kept few whatever that is: `git repack --geometric` combines the small ones, loses
no object, needed or not, and leaves alone what is marked to be kept.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from subprocess import Popen, TimeoutExpired
from time import monotonic

from patchq.gate.errors import Fault
from patchq.gate.git.command import LONGEST_SECONDS, QUIET, Git, plain_environment
from patchq.gate.git.repository import Repository

_PAUSE_SECONDS = 60.0
_TIDY = ("maintenance", "run", "--auto", "--quiet")
_COMBINE = ("-c", "pack.threads=1", "repack", "--geometric=2", "-d", "-n", "-q")
_OFF = ("false", "no", "off", "0")  # as git spells that something is switched off
# So many new packs are combined beside the work; with so many, it waits for that.
MANY, MOST = 12, 24


class Tidying:
    """Of one repository, by one process: the one that empties the inbox.

    What git has begun it ends by itself, also when this process is gone.
    """

    def __init__(self, repo: Repository) -> None:
        self.due = False  # something was written since git was asked last
        self.process: Popen[bytes] | None = None  # the git that was asked last
        self._combining: Popen[bytes] | None = None
        self._repo, place = repo, repo.commondir
        self._git = Git(plain_environment(GIT_DIR=str(place)), QUIET, place, place)
        self._known, self._before = set[Path](), set[Path]()
        self._next = 0.0

    def ask(self) -> None:
        """Start git's housekeeping if it is due, at most once a minute.

        One runs at a time.  Git decides if there is enough to do (`gc.auto`, `maintenance.*`).
        """
        running = self.process is not None and self.process.poll() is None
        if not self.due or running or monotonic() < self._next:
            return
        self.due, self._next = False, monotonic() + _PAUSE_SECONDS
        with suppress(Fault, OSError):
            if (self._repo.setting("maintenance.auto") or "true").lower() not in _OFF:
                self.process = self._git.start(*_TIDY)

    def combine(self) -> bool:
        """Have many new packs combined; return True once that has ended."""
        packs = self._packs()
        self._known &= packs
        new = len(packs - self._known)
        if self._combining is None and new >= MANY:
            self._before = packs
            with suppress(Fault, OSError):
                self._combining = self._git.start(*_COMBINE)
        if self._combining is None or (self._combining.poll() is None and new < MOST):
            return False
        try:
            self._combining.wait(LONGEST_SECONDS)
        except TimeoutExpired:
            os.killpg(self._combining.pid, SIGKILL)
        self._combining, self._known = None, self._before & self._packs()
        return True

    def _packs(self) -> set[Path]:
        return {*self._repo.commondir.glob("objects/pack/*.pack")}
