"""Git's own housekeeping, which its commands ask for after each commit and libgit2 never does:
without it every landing leaves loose objects and refs, and every group of them a pack."""

from __future__ import annotations

import logging
import subprocess
from time import monotonic

from patchq.git.command import QUIET, Git, plain_environment
from patchq.git.repository import Repository

_LOG = logging.getLogger("patchq")
_PAUSE_SECONDS = 60.0
_WORDS = ("maintenance", "run", "--auto", "--quiet")


class Tidying:
    """Of one repository.  Git decides whether there is enough to do (`gc.auto`, `maintenance.*`),
    goes on by itself, and is not waited for."""

    def __init__(self, repo: Repository) -> None:
        self.due = False
        """Whether something was written since the last time."""
        self.process: subprocess.Popen[bytes] | None = None
        """The git that was started last."""
        self._repo = repo
        self._next = 0.0

    def turn(self) -> None:
        """Start git where that is due, at most once a minute and one at a time."""
        running = self.process is not None and self.process.poll() is None
        if not self.due or running or monotonic() < self._next:
            return
        self.due, self._next = False, monotonic() + _PAUSE_SECONDS
        if not self._wanted():
            return
        place = self._repo.commondir
        try:
            self.process = Git(plain_environment(GIT_DIR=str(place)), QUIET, place).start(*_WORDS)
        except OSError as error:
            _LOG.debug("git cannot tidy up: %s", error)

    def _wanted(self) -> bool:
        try:
            return bool(self._repo.raw_repository.config.get_bool("maintenance.auto"))
        except (KeyError, ValueError):
            return True
