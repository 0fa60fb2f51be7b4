"""Git's `proc-receive` hook: a push to refs/for/BRANCH hands in what BRANCH lacks.

The response that they make holds all that they change, so that the pushed objects are needed no
longer than it takes to make it.  The ref is never stored.  What is printed on standard error, the
pusher sees as `remote:` lines; standard output belongs to git.
"""

from __future__ import annotations

import shutil
import signal
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from patchq.cli import opening
from patchq.core.model.names import PUSH, batch_id
from patchq.core.text.quote import visible
from patchq.core.text.retry import WHAT_TO_SEND
from patchq.gate.api import words
from patchq.gate.api.submitting import of_push
from patchq.gate.api.waiting import VERDICT
from patchq.gate.errors import Fault, TimeIsUp, UsageError
from patchq.gate.intake import push as receiving
from patchq.gate.intake.push import NAMESPACE, Command, Push
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report

_MOST_LINES, _FEW_LINES = 60, 12  # of the page of a refusal, and of any other
_HELD_SECONDS = 2.0  # a change that is held for longer is reported as held
_LONGEST_NAME = 40


def receive(args: Namespace) -> int:
    """Answer git's `proc-receive` request, and return exit code 0."""
    reader, writer = sys.stdin.buffer, sys.stdout.buffer
    push = receiving.hear(reader, writer)
    try:
        stopped: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(
                number, lambda number, _: stopped.append(number)
            )  # the change is reported on first
        reason = _handed_in(args, push, stopped)
    except Fault as fault:
        words = fault.message if fault.code == UsageError.code else f"{fault.code}: {fault.message}"
        reason = " ".join(visible(words).split())
        _tell([reason, *([f"  {fault.hint}"] if fault.hint else [])])
    receiving.answer(writer, push, reason)
    return 0


def _handed_in(args: Namespace, push: Push, stopped: Sequence[int]) -> str | None:
    command, target = _only(push)
    keys, seconds = receiving.push_options(push.options)
    gate = opening.gate(args)
    data, words = of_push(gate.session(writes=False), command.new, target, keys, args.objects)
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


def _only(push: Push) -> tuple[Command, str]:
    if len(push.commands) != 1:
        raise UsageError(f"{len(push.commands)} refs are pushed", f"push one {NAMESPACE}BRANCH")
    (command,) = push.commands
    if not command.ref.startswith(NAMESPACE) or command.ref == NAMESPACE:
        raise UsageError(f"{command.ref} is for no branch", f"push to {NAMESPACE}BRANCH")
    if not command.new.strip("0"):
        raise UsageError(
            f"{command.ref} is pushed to and never stored, so it cannot be deleted",
            "to take a proposal back, use `patchq discard`",
        )
    return command, command.ref.removeprefix(NAMESPACE)


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
