"""Arguments that several verbs take, and what they stand for."""

from __future__ import annotations

import re
import sys
from argparse import Action, ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from patchq.gate.errors import UsageError


class Argument:
    """One argument of a verb, as `ArgumentParser.add_argument` takes it."""

    def __init__(self, *names: str, **options: Any) -> None:
        self.names, self.options = names, options


# An entry of a verb's `ARGUMENTS`: arguments, those of which one at most may be given, and the
# verbs below a verb, each with what it is for and its own arguments.
Entry = Argument | tuple[Argument, ...] | dict[str, tuple[str, tuple[Argument, ...]]]

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}  # seconds of each unit of time
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?|\d{1,2}[./]\d|\d{1,2}:\d\d|\b(?:yesterday|today|now|noon|midnight|ago|last"
    r"|(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*)\b",
    re.IGNORECASE,
)
RESPONSE = Argument("file", metavar="FILE", help="the response, or - for standard input")
BATCH = Argument("id", metavar="ID")


def add(
    parser: ArgumentParser,
    entries: Iterable[Entry],
    each: Callable[[Action], None] = lambda action: None,
) -> None:
    """Have the parser take the arguments; `each` is called with what the parser makes of one."""
    for entry in entries:
        if isinstance(entry, Argument):
            each(parser.add_argument(*entry.names, **entry.options))
        elif isinstance(entry, tuple):
            group = parser.add_mutually_exclusive_group()
            for argument in entry:
                each(group.add_argument(*argument.names, **argument.options))
        else:
            verbs = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
            for name, (purpose, more) in entry.items():
                add(verbs.add_parser(name, help=purpose), more, each)


def positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
        raise ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def port(text: str) -> int:
    """An argument that is a port, or 0."""
    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) >= 1 << 16:
        raise ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """An argument that is a time above nothing."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 10**9:
        raise ArgumentTypeError(f"expected seconds, more than 0, got {text!r}")
    return number


def moment(text: str) -> float:
    """Return the seconds since the epoch of a time in the past, as git reads one, or a span."""
    import subprocess  # only a date needs them
    import time

    expected = f"expected a time such as 2h, yesterday, 2 days ago or 2026-01-31, got {text!r}"
    if span := _SPAN.fullmatch(text):
        return time.time() - int(span[1]) * UNITS[span[2]]
    if not _DATE.search(text):  # git takes any word for now
        raise ArgumentTypeError(expected)
    asked = ["git", "rev-parse", f"--since={text}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    found = done.stdout.strip().removeprefix("--max-age=")
    if not found.isdigit():
        raise ArgumentTypeError(expected)
    if int(found) > time.time() + 1:
        raise ArgumentTypeError(f"{expected}, which is still to come")
    return float(found)


def words(text: str) -> str:
    """An argument that is a person's text; blank text says nothing."""
    if not text.strip():
        raise ArgumentTypeError("expected words, got none")
    return text.strip()


def edit_ids(text: str) -> frozenset[str]:
    """An argument that names edits."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def read_response(name: str) -> tuple[bytes, str]:
    """The bytes of FILE or, for `-`, of standard input, and the response's name."""
    if name == "-":
        if sys.stdin.isatty():
            print("patchq: reading the response here; Ctrl-D ends it", file=sys.stderr)
        return sys.stdin.buffer.read(), "response.md"
    try:
        return Path(name).read_bytes(), Path(name).name
    except OSError as error:
        raise UsageError(
            f"cannot read {name}: {error.strerror}", "name a file, or - for standard input"
        ) from None


def read_text(name: str, most: int) -> bytes:
    """The first bytes of FILE or, for `-`, of standard input: one more than `most` if it has
    more."""
    if name == "-":
        return sys.stdin.buffer.read(most + 1)
    try:
        with Path(name).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read {name}: {error.strerror}", "name a file, or - for standard input"
        ) from None
