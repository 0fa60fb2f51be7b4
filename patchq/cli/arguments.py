"""Arguments that several verbs take, and what they stand for."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from patchq.model.errors import UsageError


def add_response(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the response, or - for standard input")


def add_batch(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
        raise ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def edit_ids(text: str) -> frozenset[str]:
    """An argument that names edits."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def read_response(name: str) -> tuple[bytes, str]:
    """The bytes of FILE or, for `-`, of standard input, and the response's name."""
    if name == "-":
        return sys.stdin.buffer.read(), "response.md"
    try:
        return Path(name).read_bytes(), Path(name).name
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
