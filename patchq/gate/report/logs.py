"""The log: one line for each event, on standard error (the journal).

A line may quote what a response, a hook or a model wrote.  So hidden characters are written out,
which also keeps an event on one line, and what reads as a secret is left out.  The batch that a
line is about is the one that the thread is at work on (`about`), or the record's own `batch`.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from patchq.core.text.quote import clip, visible
from patchq.gate.report import secrecy

FILE = "daemon.log"  # in the queue, of a daemon in the background
FILE_BYTES = 4 * 1024 * 1024  # at which it is full
_MOST = 4000
_FIELDS = ("batch", "state", "target", "commit", "codes", "hook")
_LOG = logging.getLogger("patchq")
# The id of the batch that the thread is at work on, or its response's name as long as it has none;
# empty for none.
_BATCH: ContextVar[str] = ContextVar("batch", default="")

Format = Literal["text", "json"]


def setup(level: str, format: Format, secrets: Iterable[str] = ()) -> None:
    """Send the log of this process to standard error; no line has one of the `secrets`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(format, secrets))
    _LOG.handlers[:] = [handler]
    _LOG.propagate = False  # a handler of a library's, such as the MCP SDK's, would show secrets
    _LOG.setLevel(level.upper())


def bound(file: Path) -> None:
    """Keep a log file that is full as `NAME.1`, and empty it; its writers append."""
    if file.exists() and file.stat().st_size > FILE_BYTES:
        shutil.copyfile(file, f"{file}.1")
        os.truncate(file, 0)


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
    def __init__(self, format: Format, secrets: Iterable[str]) -> None:
        super().__init__()
        self._format, self._secrets = format, [text for text in secrets if text]

    def format(self, record: logging.LogRecord) -> str:
        text, fields = self._line(record.getMessage()), self._fields(record)
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._format == "json":
            event = {"time": when, "level": record.levelname.lower(), "message": text, **fields}
            event |= {"traceback": self._line(trace)} if trace else {}
            return json.dumps(event, ensure_ascii=False)
        batch = fields.get("batch", "")
        about = f"{batch}: " if batch and batch not in text else ""
        first = f"{when} {record.levelname} {about}{text}"
        return "\n  ".join([first, *map(self._line, trace.splitlines())])

    def _line(self, text: str) -> str:
        """The text on one line, without secrets."""
        kind = secrecy.gate().secret_kind(text) or secrecy.begun(text)
        if not kind and any(secret in text for secret in self._secrets):
            kind = "a key"
        return f"(the text holds {kind})" if kind else visible(clip(text, _MOST))

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        found = {name: getattr(record, name, None) for name in _FIELDS}
        found["batch"] = found["batch"] or _BATCH.get()
        return {
            name: list(map(self._line, map(str, value)))
            if isinstance(value, list | tuple)
            else self._line(str(value))
            for name, value in found.items()
            if value
        }
