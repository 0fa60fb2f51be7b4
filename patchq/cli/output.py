"""Surroundings of every verb: the gate of its repository, and its output.

On a terminal that is coloured, and in git's pager.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from shutil import get_terminal_size, which
from typing import TYPE_CHECKING, NamedTuple

from patchq.cli.command import forget_reader
from patchq.core.text.quote import visible
from patchq.gate.api import Gate
from patchq.gate.api.location import Options
from patchq.gate.api.words import line
from patchq.gate.errors import needs_extra
from patchq.gate.report.document import printed
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report, waits_for_its_agent

if TYPE_CHECKING:
    from patchq.forge.sync import Sync

_LOG = logging.getLogger("patchq")


def options(args: Namespace) -> Options:
    return Options(
        args.directory,
        args.config,
        getattr(args, "home", None),
        getattr(args, "home_remote", None),
        "debug" if args.verbose else "error" if args.quiet else None,
        partial(notice, args),
    )


def gate(args: Namespace) -> Gate:
    """Return the gate of the command, which closes it at its end."""
    if "gate" not in args:
        args.gate = args.opened.enter_context(Gate(options(args)))
    found: Gate = args.gate
    return found


def synced(args: Namespace, gate: Gate) -> Sync:
    with needs_extra("forge"):
        from patchq.forge import connect
        from patchq.forge.sync import Sync

    def say(text: str) -> None:
        if not args.quiet:
            print(visible(text), flush=True)

    context = gate.context(targeted=True)
    return Sync(connect.project_of(context.repo, context.config), say)


def command(args: Namespace) -> list[str]:
    """Return the words that start patchq again as it was called."""
    return options(args).command + ["-q"] * args.quiet + ["-v"] * args.verbose


def own_words() -> list[str]:
    """Return the words that start this very patchq, whatever PATH is."""
    scripts = (Path(sys.argv[0]), Path(sys.executable).with_name("patchq"))
    script = next((one for one in scripts if one.name == "patchq" and one.is_file()), None)
    return [os.path.abspath(script)] if script else [sys.executable, "-m", "patchq"]


# ---------------------------------------------------------------- output


def notice(args: Namespace, text: str) -> None:
    if not args.quiet:
        print(visible(f"patchq: {text}"), file=sys.stderr)


def say(args: Namespace, report: Report) -> None:
    """Print a verdict as one line, plain or JSON."""
    if args.json:
        put(printed(report))
    elif not args.quiet or report.state == "rejected":
        put(line(report))


def log_and_say(args: Namespace, report: Report) -> None:
    """Log a verdict, with fields for programs; print it with `--json` or `--quiet`."""
    about = {
        "batch": report.id,
        "state": report.state,
        "target": report.target,
        "commit": report.commit,
        "codes": [problem.code for problem in report.problems],
    }
    level = logging.WARNING if report.state == "rejected" else logging.INFO
    _LOG.log(level, "%s", line(report), extra=about)
    if args.json or args.quiet:
        say(args, report)


def done(args: Namespace, report: Report, text: str) -> int:
    """Print what was done to a change, or its report as JSON.

    Returns the exit code.
    """
    if args.json:
        say(args, report)
    elif not args.quiet:
        put(visible(text))
    return 0


class Verdicts:
    """Prints each verdict that it is called with, and collects their states.

    With `pages`, a verdict that is to be answered is followed by its page, which says what to send.
    """

    def __init__(self, args: Namespace, *, pages: bool = False, again: str = "") -> None:
        self._args, self._pages, self._again = args, pages, again
        self.states: list[str] = []

    def __call__(self, report: Report) -> None:
        self.states.append(report.state)
        say(self._args, report)
        to_answer = report.state == "rejected" or waits_for_its_agent(report)
        if self._pages and to_answer and not self._args.json:
            send = None
            if self._again:
                command = self._again.replace("ID", report.id)
                send = f"Correct it there, commit it, then hand it in again:\n\n    {command}"
            put("\n" + to_markdown(report, send=send), end="")

    @property
    def exit_code(self) -> int:
        return int("rejected" in self.states)


def emit(args: Namespace, value: object, *lines: str) -> int:
    """Print an answer as JSON or as lines, and return exit code 0."""
    if args.json or lines:
        put(printed(value, indent=1) if args.json else "\n".join(lines))
    return 0


# ---------------------------------------------------------------- terminal


def put(text: str, end: str = "\n") -> None:
    """Print text at once, or nothing if the reader is gone."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        forget_reader()


class Styled(NamedTuple):
    """A piece of a line, and its style: words that rich knows."""

    text: str
    style: str = ""


Line = tuple[Styled, ...]


def is_terminal() -> bool:
    return sys.stdout.isatty()


def plain(text: str, style: str = "") -> Line:
    return (Styled(text, style),)


def show(lines: Iterable[Line], *, crop: bool = False) -> None:
    """Print the lines, on a terminal in git's pager.

    On a terminal, `crop` cuts each line to its width.
    """
    if not is_terminal():
        for line in lines:
            put("".join(cell.text for cell in line))
        return
    from rich.console import Console  # only a terminal needs it
    from rich.text import Text

    page = io.StringIO()
    width = get_terminal_size().columns
    console = Console(file=page, force_terminal=True, width=width, highlight=False)
    for line in lines:
        text = Text.assemble(*line, no_wrap=crop, overflow="ellipsis" if crop else None)
        console.print(text, soft_wrap=not crop, no_wrap=crop, crop=crop)
    pager = _pager()
    if not pager:
        put(page.getvalue(), end="")
        return
    # The keyboard's interrupt is the reader's meanwhile, as in git.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        environment = {"LESS": "FRX", "LV": "-c", **os.environ}
        data = page.getvalue().encode("utf-8", "backslashreplace")
        subprocess.run(["/bin/sh", "-c", pager], input=data, env=environment, check=False)
    finally:
        signal.signal(signal.SIGINT, before)


def _pager() -> str:
    if os.environ.get("TERM") == "dumb":
        return ""
    asked = subprocess.run(["git", "var", "GIT_PAGER"], capture_output=True, text=True)
    found = asked.stdout.strip()
    return found if found and which(found.split()[0]) else ""
