"""Git's `proc-receive` hook: a push to refs/for/BRANCH hands in what BRANCH lacks.

The response that they make holds all that they change, so that the pushed objects are needed no
longer than it takes to make it.  The ref is never stored.  What is printed on standard error, the
pusher sees as `remote:` lines; standard output belongs to git: the hook reads what is pushed and
answers for each ref, in lines that begin with their length (`git help githooks`, under
proc-receive; `git help protocol-common`, under pkt-line).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, BinaryIO

from msgspec import Meta, ValidationError, convert

from patchq.cli import output
from patchq.core.model.names import PUSH, batch_id
from patchq.core.text.quote import visible
from patchq.core.text.retry import WHAT_TO_SEND
from patchq.gate.api import words
from patchq.gate.api.submitting import NAMESPACE, of_push
from patchq.gate.api.waiting import VERDICT
from patchq.gate.errors import Fault, TimeIsUp, UsageError
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report

Update = tuple[str, str]  # the commit, in hex, and the ref that it is pushed to
WAITS_SECONDS = 600.0
_MOST_BYTES = 1 << 20  # of the refs, and of the options, that git hands to its hook
_MOST_REASON = 300
_Timeout = Annotated[float, Meta(ge=0, le=86_400)]
NAMES = ("agent", "depends-on", "id", "message", "model", "retries", "timeout")
_ELSEWHERE = {
    "target": "the target is what you push to: refs/for/BRANCH",
    "base": "the base is where the commits leave the target",
}
_MOST_LINES, _FEW_LINES = 60, 12  # of the page of a refusal, and of any other
_HELD_SECONDS = 2.0  # a change that is held for longer is reported as held
_LONGEST_NAME = 40


def receive(args: Namespace) -> int:
    """Answer git's `proc-receive` request, and return exit code 0."""
    reader, writer = sys.stdin.buffer, sys.stdout.buffer
    updates, options = hear(reader, writer)
    try:
        stopped: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(
                number, lambda number, _: stopped.append(number)
            )  # the change is reported on first
        reason = _handed_in(args, updates, options, stopped)
    except Fault as fault:
        words = fault.message if fault.code == UsageError.code else f"{fault.code}: {fault.message}"
        reason = " ".join(visible(words).split())
        _tell([reason, *([f"  {fault.hint}"] if fault.hint else [])])
    answer(writer, updates, reason)
    return 0


def _handed_in(
    args: Namespace, updates: Sequence[Update], options: Iterable[str], stopped: Sequence[int]
) -> str | None:
    commit, target = _only(updates)
    keys, seconds = push_options(options)
    gate = output.gate(args)
    data, words = of_push(gate.session(writes=False), commit, target, keys, args.objects)
    shutil.rmtree(args.objects, ignore_errors=True)
    if stopped:
        raise UsageError("the push was interrupted; nothing was taken", "push again")
    ticket = gate.submit(data, name=batch_id(words)[:_LONGEST_NAME] + PUSH)
    _tell([f"handed in as {ticket.id}"])
    try:
        wait = partial(gate.wait, ticket, stopped=lambda: bool(stopped))
        report = wait(VERDICT | {"held"}, seconds, served=True)
        if report.state == "held":
            with suppress(TimeIsUp):
                report = wait(timeout=_HELD_SECONDS)
    except TimeIsUp as why:
        _tell([why.message, f"  {why.hint}"])
        return f"interrupted; {ticket.id} stays in the queue" if stopped else None
    return _print_verdict(report)


def _only(updates: Sequence[Update]) -> tuple[str, str]:
    if len(updates) != 1:
        raise UsageError(f"{len(updates)} refs are pushed", f"push one {NAMESPACE}BRANCH")
    ((commit, ref),) = updates
    if not ref.startswith(NAMESPACE) or ref == NAMESPACE:
        raise UsageError(f"{ref} is for no branch", f"push to {NAMESPACE}BRANCH")
    if not commit.strip("0"):
        raise UsageError(
            f"{ref} is pushed to and never stored, so it cannot be deleted",
            "to take a proposal back, use `patchq discard`",
        )
    return commit, ref.removeprefix(NAMESPACE)


# ---------------------------------------------------------------- git's talk


def hear(reader: BinaryIO, writer: BinaryIO) -> tuple[list[Update], list[str]]:
    """Greet git, and return what is pushed with its options.

    Raises `UsageError` for anything else, or for too much.
    """
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
    return [(new, ref) for _, new, ref in commands], options


def answer(writer: BinaryIO, updates: Iterable[Update], reason: str | None) -> None:
    """Report each ref to git as done, or as refused for the reason."""
    for _, ref in updates:
        answer = f"ng {ref} {reason[:_MOST_REASON]}" if reason else f"ok {ref}"
        _put(writer, answer.encode("utf-8", "surrogateescape"))
    _flush(writer)


def push_options(options: Iterable[str]) -> tuple[dict[str, Any], float]:
    """Return keys of the front matter, and the seconds that the pusher waits.

    Raises `UsageError` for an option that is wrong.
    """
    keys: dict[str, Any] = {}
    ids: list[str] = []
    for option in options:
        name, _, value = option.partition("=")
        if name not in NAMES:
            hint = _ELSEWHERE.get(name, f"there are: {', '.join(NAMES)}")
            raise UsageError(f"there is no push option {name[:100]!r}", hint)
        if not value.strip():
            raise UsageError(f"the push option {name} has no value", f"say it as {name}=…")
        if name == "depends-on":
            ids += (id.strip() for id in value.split(","))
        elif name in keys:
            raise UsageError(f"the push option {name} is given twice", "give it once")
        else:
            keys[name] = value
    keys["depends_on"] = [id for id in ids if id]
    try:
        return keys, convert(keys.pop("timeout", WAITS_SECONDS), _Timeout, strict=False)
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


# ---------------------------------------------------------------- the verdict


def _print_verdict(report: Report) -> str | None:
    refused = report.state == "rejected"
    heading = f"\n{WHAT_TO_SEND}\n" if refused else "\n## Edits\n"
    page, _, send = to_markdown(report).partition(heading)
    lines = page.rstrip().split("\n")[: _MOST_LINES if refused else _FEW_LINES]
    sent = [WHAT_TO_SEND, "", send.strip(), ""] if refused else []
    _tell([words.line(report), "", *lines, "", *sent, f"`patchq show {report.id}` prints it all"])
    return " ".join(words.line(report).split()) if refused else None


def _tell(lines: Iterable[str]) -> None:
    """Print lines to the pusher, if the connection is still open."""
    try:
        for line in lines:
            print(visible(line), file=sys.stderr)
        sys.stderr.flush()
    except OSError:
        pass
