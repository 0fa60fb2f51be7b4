"""Ways in for a response: `submit`, `wait`, `check` and `apply`."""

from __future__ import annotations

import math
import shlex
import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast, get_args

from patchq.cli import arguments, output
from patchq.cli.arguments import Argument, Table
from patchq.core.model.names import REQUEST
from patchq.core.model.values import State
from patchq.gate.api import Gate, words
from patchq.gate.api.submitting import Commits, Keys, Ticket
from patchq.gate.api.waiting import CHANGES_REQUESTED
from patchq.gate.errors import UsageError
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import STANDING, waits_for_its_agent

ARGUMENTS: Table = {
    "submit": (
        (
            Argument("file", nargs="?", metavar="FILE", help="the response, or -"),
            Argument(
                "--branch", metavar="NAME", help="hand in what a branch has and the target has not"
            ),
            Argument(
                "--range", metavar="A..B", help="hand in the commits of B that A does not have"
            ),
            Argument(
                "--worktree",
                metavar="DIR",
                nargs="?",
                const=".",
                help="hand in what a work tree has, committed or not (this one)",
            ),
        ),
        Argument(
            "--series",
            action="store_true",
            help="one change for each commit, each on the one before",
        ),
        Argument("--id", metavar="ID", help="the name of the change"),
        Argument("--agent", metavar="A", help="who wrote it"),
        Argument("--model", metavar="M", help="and by which model"),
        Argument("--target", metavar="B", help="the branch that it is for"),
        Argument("--base", metavar="C", help="the commit that the agent saw"),
        Argument("--message", metavar="M", help="the commit's message"),
        Argument("--retries", metavar="ID", help="the refused change that this one replaces"),
        Argument("--wait", action="store_true", help="wait for the verdict"),
        Argument(
            "--timeout",
            metavar="S",
            type=arguments.seconds,
            help="wait for so many seconds; then exit 124",
        ),
    ),
    "wait": (
        arguments.BATCH,
        Argument(
            "--for",
            dest="wanted",
            metavar="STATE",
            action="append",
            choices=(*get_args(State), CHANGES_REQUESTED),
            help="until it has this state, or one of several (its verdict); of %(choices)s",
        ),
        Argument(
            "--timeout",
            metavar="S",
            type=arguments.seconds,
            help="for so many seconds; then exit 124",
        ),
    ),
    "check": (arguments.RESPONSE,),
    "apply": (arguments.RESPONSE,),
}
_KEYS = ("id", "target", "base", "message", "agent", "model", "retries")


def submit(args: Namespace) -> int:
    waits = args.wait or args.timeout is not None
    gate = output.gate(args)
    keys = cast(Keys, {key: getattr(args, key) for key in _KEYS})
    if any(value is not None for value in (args.branch, args.range, args.worktree)):
        tickets = _hand_in(args, gate, keys)
    elif args.file is None:
        raise UsageError(
            "expected a response",
            "name a file, - for standard input, or --branch, --range or --worktree",
        )
    else:
        data, name = arguments.read_response(args.file)
        if name.endswith(REQUEST) and (waits or any(keys.values())):
            raise UsageError(  # nor could an answer be waited for by its bytes
                f"a request takes none of --{', --'.join(_KEYS)} and --wait",
                "say `target` and `base` in the request; to wait for the answer, use `patchq ask`",
            )
        tickets = [gate.submit(data, name=name, **keys)]
    for key in tickets[0].replaced:
        output.notice(args, f"--{key} replaces `{key}` of the front matter")
    if waits:
        return _wait_for_verdicts(args, gate, tickets)
    answer = [{"id": one.id, "file": one.file} for one in tickets]
    return output.emit(args, answer if args.series else answer[0], *(one.id for one in tickets))


def _hand_in(args: Namespace, gate: Gate, keys: Keys) -> list[Ticket]:
    if args.base:
        raise UsageError("what is handed in by commits has its base", "leave --base out")
    if args.series and (args.worktree is not None or args.message):
        raise UsageError(
            "--series hands in commits with their messages",
            "leave --message out, and name a --branch or --range",
        )
    place = args.worktree and Path(args.directory, args.worktree)
    return gate.submit_commits(Commits(args.branch, args.range, place), series=args.series, **keys)


def _wait_for_verdicts(args: Namespace, gate: Gate, tickets: Sequence[Ticket]) -> int:
    until = time.monotonic() + (args.timeout or math.inf)
    if not args.json:
        names = ", ".join(one.id for one in tickets)
        output.notice(args, f"waiting for the verdict on {names}")
    verdicts = output.Verdicts(args, pages=True, again=_again(args))
    for one in tickets:
        left = max(until - time.monotonic(), 0.0)
        verdicts(gate.wait(one, timeout=left, unserved=partial(_say_unserved, args)))
    return verdicts.exit_code


def _say_unserved(args: Namespace) -> None:
    output.notice(args, "no daemon runs; waiting for `patchq watch` or `patchq run`")


def _again(args: Namespace) -> str:
    """Return the command that submits corrected commits, or "" for a file."""
    given = ((flag, getattr(args, flag)) for flag in ("worktree", "branch", "range"))
    words = [f"--{flag} {shlex.quote(value)}" for flag, value in given if value is not None]
    return f"patchq submit {words[0]} --retries ID --wait" if words else ""


# ---------------------------------------------------------------- wait


def wait(args: Namespace) -> int:
    wanted = args.wanted or ()
    unserved = partial(_say_unserved, args)
    report = output.gate(args).wait(args.id, wanted, args.timeout, unserved=unserved)
    output.Verdicts(args, pages=True)(report)
    asked = CHANGES_REQUESTED in wanted and waits_for_its_agent(report)
    return int(not asked and report.state not in (wanted or STANDING | {"duplicate"}))


# ---------------------------------------------------------------- check


def check(args: Namespace) -> int:
    data, name = arguments.read_response(args.file)
    report = output.gate(args).check(data, name=name)
    if args.json:
        output.say(args, report)
    else:
        output.put(f"would be {words.line(report)}")
        if not args.quiet:
            output.put(to_markdown(report, foreseen=True), end="")
    return 1 if report.state == "rejected" else 0


# ---------------------------------------------------------------- apply


def apply(args: Namespace) -> int:
    gate = output.gate(args)
    session = gate.session()
    data, name = arguments.read_response(args.file)

    from patchq.cli import decide  # only who asks needs it

    ask = decide.asker(args, session.config) if args.file != "-" else None
    verdicts = output.Verdicts(args)
    try:
        gate.apply(data, name=name, ask=ask, tell=verdicts)
    except decide.Quit:
        return 130
    return verdicts.exit_code
