"""The protocol of git's `proc-receive` hook, and the options of a push.

The hook reads what is pushed and answers for each ref, in lines that begin with their length
(`git help githooks`, under proc-receive; `git help protocol-common`, under pkt-line).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, BinaryIO

from msgspec import Meta, Struct, ValidationError, convert

from patchq.gate.errors import UsageError

NAMESPACE = "refs/for/"
WAITS_SECONDS = 600.0
_MOST_BYTES = 1 << 20  # of the refs, and of the options, that git hands to its hook
_MOST_REASON = 300
_Timeout = Annotated[float, Meta(ge=0, le=86_400)]
NAMES = ("agent", "depends-on", "id", "message", "model", "retries", "timeout")
_ELSEWHERE = {
    "target": "the target is what you push to: refs/for/BRANCH",
    "base": "the base is where the commits leave the target",
}


class Command(Struct, frozen=True):
    """The update of one ref; the ids are in hex, all zeros for none."""

    old: str
    new: str
    ref: str


class Push(Struct, frozen=True):
    """The updates of a push, with its options as they came."""

    commands: tuple[Command, ...]
    options: tuple[str, ...] = ()


def hear(reader: BinaryIO, writer: BinaryIO) -> Push:
    """Greet git and read the push; `UsageError` for anything else, or for too much."""
    greeting = list(_lines(reader))
    version, _, can = greeting[0].partition(b"\0") if greeting else (b"", b"", b"")
    if version.rstrip() != b"version=1":
        raise UsageError("this is not git's proc-receive", "git calls it, for a push to refs/for/")
    with_options = b"push-options" in can.split()
    _put(writer, b"version=1\0push-options" if with_options else b"version=1")
    _flush(writer)
    commands = [os.fsdecode(line).split(" ", 2) for line in _lines(reader)]
    if not all(len(words) == 3 for words in commands):
        raise UsageError("git's proc-receive sent what is no command", "see `git help githooks`")
    options = [line.decode("utf-8", "replace") for line in _lines(reader)] if with_options else []
    return Push(tuple(Command(*words) for words in commands), tuple(options))


def answer(writer: BinaryIO, push: Push, reason: str | None) -> None:
    """Report each ref to git as done, or as refused for the reason."""
    for command in push.commands:
        answer = f"ng {command.ref} {reason[:_MOST_REASON]}" if reason else f"ok {command.ref}"
        _put(writer, answer.encode("utf-8", "surrogateescape"))
    _flush(writer)


def push_options(options: Iterable[str]) -> tuple[dict[str, Any], float]:
    """Return keys of the front matter, and the seconds that the pusher waits.

    Raises `UsageError` for an option that is wrong.
    """
    keys: dict[str, Any] = {"timeout": WAITS_SECONDS}
    for option in options:
        name, _, value = option.partition("=")
        if name not in NAMES:
            hint = _ELSEWHERE.get(name, f"there are: {', '.join(NAMES)}")
            raise UsageError(f"there is no push option {name[:100]!r}", hint)
        if not value.strip():
            raise UsageError(f"the push option {name} has no value", f"say it as {name}=…")
        keys[name.replace("-", "_")] = value
    ids = keys.pop("depends_on", "").split(",")
    keys["depends_on"] = [id.strip() for id in ids if id.strip()]
    try:
        return keys, convert(keys.pop("timeout"), _Timeout, strict=False)
    except ValidationError as error:
        raise UsageError(f"the push option timeout: {error}", "give seconds") from None


# ---------------------------------------------------------------- lines with their length


def _lines(reader: BinaryIO) -> Iterator[bytes]:
    """Yield the lines up to the next pause.

    Raises `UsageError` where they break off or are too much.
    """
    limit = _MOST_BYTES
    while (length := _length(reader.read(4))) != 0:
        limit -= length
        if limit < 0:
            raise UsageError("git sends too many refs or push options", "push fewer at once")
        data = reader.read(length - 4) if length >= 4 else b""
        if length < 4 or len(data) != length - 4:
            raise UsageError("what git sends to proc-receive breaks off", "push again")
        yield data.removesuffix(b"\n")


def _length(head: bytes) -> int:
    return int(head, 16) if re.fullmatch(rb"[0-9a-fA-F]{4}", head) else -1


def _put(writer: BinaryIO, line: bytes) -> None:
    writer.write(b"%04x" % (len(line) + 4) + line)


def _flush(writer: BinaryIO) -> None:
    writer.write(b"0000")
    writer.flush()
