"""The log: one line for each event, on standard error (the journal) or in a file of bounded size.

A line may quote what a response, a hook or a model wrote.  So hidden characters are written out,
which also keeps an event on one line, and what reads as a secret is left out.  The batch that a
line is about is the one that the thread is at work on (`about`), or the record's own `batch`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from patchq.core.text.quote import clip, visible
from patchq.gate.report import secrecy

# The size at which a log file becomes `<name>.1`, in the place of the one before it.
FILE_BYTES = 4 * 1024 * 1024
_MOST = 4000
_FIELDS = ("batch", "state", "target", "commit", "codes", "hook")
_LOG = logging.getLogger("patchq")
# The id of the batch that the thread is at work on, or its response's name as long as it has none;
# empty for none.
_BATCH: ContextVar[str] = ContextVar("batch", default="")

Format = Literal["text", "json"]


def setup(
    level: str, format: Format, file: Path | None = None, secrets: Iterable[str] = ()
) -> None:
    """Send the log of this process to standard error or to a file.

    The file gets everything else that the process prints, too.  `secrets` are texts that no line
    may hold.
    """
    handler = _log_file(file) if file else logging.StreamHandler(sys.stderr)
    handler.setFormatter((_Json if format == "json" else _Text)(secrets))
    for old in _LOG.handlers:
        old.close()
    _LOG.handlers[:] = [handler]
    _LOG.propagate = False  # a handler of a library's, such as the MCP SDK's, would show secrets
    _LOG.setLevel(level.upper())


def _log_file(path: Path) -> logging.Handler:
    """Return a handler that writes to a file, and keeps the one before it.

    What the process prints goes there, too.
    """
    from logging.handlers import RotatingFileHandler  # takes long, and daemons alone have one

    class LogFile(RotatingFileHandler):
        def doRollover(self) -> None:
            super().doRollover()
            self.take_output()

        def take_output(self) -> None:
            assert self.stream
            for fd in (1, 2):
                os.dup2(self.stream.fileno(), fd)

    handler = LogFile(path, maxBytes=FILE_BYTES, backupCount=1, encoding="utf-8")
    handler.take_output()
    return handler


def shares_output() -> bool:
    """Return True if standard output and the log go to the same place."""
    try:
        return os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return False


def turn_to(id: str) -> None:
    """Say that the batch which the block is about goes by this id now."""
    _BATCH.set(id)


@contextmanager
def about(id: str) -> Iterator[None]:
    """Have the lines that are logged inside the block name this batch."""
    before = _BATCH.set(id)
    try:
        yield
    finally:
        _BATCH.reset(before)


class _Formatter(logging.Formatter):
    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = [text for text in secrets if text]

    def line(self, text: str) -> str:
        """The text on one line, without secrets."""
        kind = secrecy.gate().secret_kind(text) or secrecy.begun(text)
        if not kind and any(secret in text for secret in self._secrets):
            kind = "a key"
        return f"(the text holds {kind})" if kind else visible(clip(text, _MOST))

    @staticmethod
    def when(record: logging.LogRecord) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        found = {name: getattr(record, name, None) for name in _FIELDS}
        found["batch"] = found["batch"] or _BATCH.get()
        return {
            name: list(map(self.line, map(str, value)))
            if isinstance(value, list | tuple)
            else self.line(str(value))
            for name, value in found.items()
            if value
        }


class _Text(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = self.line(record.getMessage())
        batch = self.fields(record).get("batch", "")
        about = f"{batch}: " if batch and batch not in text else ""
        line = f"{self.when(record)} {record.levelname} {about}{text}"
        if record.exc_info:
            trace = self.formatException(record.exc_info).split("\n")
            line += "".join(f"\n  {self.line(part)}" for part in trace)
        return line


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "time": self.when(record),
            "level": record.levelname.lower(),
            "message": self.line(record.getMessage()),
            **self.fields(record),
        }
        if record.exc_info:
            event["traceback"] = self.line(self.formatException(record.exc_info))
        return json.dumps(event, ensure_ascii=False)
