"""Arguments that several verbs take, and what they stand for."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from patchq.core.model.names import suggestion
from patchq.gate.errors import UsageError


class Argument:
    """One argument of a verb, as `ArgumentParser.add_argument` takes it."""

    def __init__(self, *names: str, **options: Any) -> None:
        self.names, self.options = names, options


# An entry of a verb's arguments: arguments, those of which one at most may be given, and the
# verbs below a verb, each with what it is for and its own arguments.
Entry = Argument | tuple[Argument, ...] | dict[str, tuple[str, tuple[Argument, ...]]]

Table = dict[str, tuple[Entry, ...]]  # the arguments of each verb of a module

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}  # seconds of each unit of time
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?|\d{1,2}[./]\d|\d{1,2}:\d\d|\b(?:yesterday|today|now|noon|midnight|ago|last"
    r"|(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*)\b",
    re.IGNORECASE,
)
RESPONSE = Argument("file", metavar="FILE", help="the response, or - for standard input")
BATCH = Argument("id", metavar="ID")


def add(parser: ArgumentParser, entries: Iterable[Entry]) -> None:
    """Have the parser take the arguments."""
    for entry in entries:
        if isinstance(entry, dict):
            verbs = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
            for name, (purpose, more) in entry.items():
                add(verbs.add_parser(name, help=purpose), more)
            continue
        several = isinstance(entry, tuple)
        group = parser.add_mutually_exclusive_group() if several else parser
        for argument in entry if isinstance(entry, tuple) else (entry,):
            group.add_argument(*argument.names, **argument.options)


def positive(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,17}", text):
        raise ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Return a positive number of seconds from an argument."""
    number = float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]*)?|\.[0-9]+", text) else 0.0
    if not number:
        raise ArgumentTypeError(f"expected seconds, more than 0, got {text!r}")
    return number


def moment(text: str) -> float:
    """Return a past time, given as a date or a span, in epoch seconds.

    Git reads the dates.  Raises `ArgumentTypeError`.
    """
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


def event_id(text: str) -> str:
    """Return the id of an event, with all its digits."""
    if not re.fullmatch(r"[0-9a-f]{1,16}", text):
        raise ArgumentTypeError(f"expected the `id` of an event, or 0 for the first, got {text!r}")
    return text.zfill(16)


def edit_ids(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def known(kind: str, name: str, names: Collection[str]) -> str:
    """Return the name if it is known.

    Raises `UsageError` otherwise, with the nearest known name as a hint.
    """
    if name not in names:
        cure = suggestion(name, names, "one of " + ", ".join(names))
        raise UsageError(f"there is no {kind} {name!r}", cure)
    return name


def agreed(args: Namespace, deed: str, *details: str) -> bool:
    """Return whether a person, or `--yes`, agrees to a deed.

    Raises `UsageError` without `--yes` and a terminal.
    The details are shown first.
    """
    if args.yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"there is no terminal to ask on: {deed}?", "say --yes as well")
    print(*details, f"{deed}? [y]es, [n]o: ", sep="\n", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def read_response(name: str) -> tuple[bytes, str]:
    """Return the bytes and the name of a response file.

    For `-`, standard input is read, and the name is `response.md`.
    """
    if name == "-" and sys.stdin.isatty():
        print("patchq: reading the response here; Ctrl-D ends it", file=sys.stderr)
    return read(name), "response.md" if name == "-" else Path(name).name


def read(name: str, most: int = -1) -> bytes:
    """Return the bytes of a file or, for `-`, of standard input.

    At most `most` bytes and one more are read.  Raises `UsageError`.
    """
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
            return file.read(most + 1 if most >= 0 else -1)
    except OSError as error:
        raise UsageError(
            f"cannot read {name}: {error.strerror}", "name a file, or - for standard input"
        ) from None
