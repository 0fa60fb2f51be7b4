"""The file that a daemon logs to, and the one before it."""

from __future__ import annotations

import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

# The size at which a log file becomes `<name>.1`, in the place of the one before it.
FILE_BYTES = 4 * 1024 * 1024


class LogFile(RotatingFileHandler):
    """A file and the one before it.  What the process prints goes there, too."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=FILE_BYTES, backupCount=1, encoding="utf-8", delay=False)
        self._take_output()

    def doRollover(self) -> None:
        super().doRollover()
        self._take_output()

    def _take_output(self) -> None:
        assert self.stream
        for fd in (1, 2):
            os.dup2(self.stream.fileno(), fd)
