"""What the benches read from a console and say to it: command lines, and lines meanwhile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from bench.git import BenchError, find_command


def command_line(module: str, manual: str | None) -> argparse.ArgumentParser:
    """For `python -m MODULE`, described by the first paragraph of its docstring."""
    first = (manual or "").split("\n\n", 1)[0]
    return argparse.ArgumentParser(prog=f"python -m {module}", description=first)


def trial_options(parser: argparse.ArgumentParser, *, json: bool = False) -> None:
    """Which command is tried and where, and with `json` where its numbers go."""
    add = parser.add_argument
    add("--command", default="patchq", metavar="CMD", help="the command to try (patchq)")
    work_option(parser, "where the repositories are made")
    if json:
        add("--json", type=Path, metavar="OUT", help="write every number there")


def work_option(parser: argparse.ArgumentParser, what: str) -> None:
    """`--work DIR`, described by `what`: a directory that is not there is made."""
    parser.add_argument("--work", type=_directory, metavar="DIR", help=what)


def _directory(text: str) -> Path:
    path = Path(text).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error.strerror}") from error
    return path


def tried(name: str, command: str, trial: Callable[[list[str]], int]) -> int:
    """The exit code: what `trial` gives for the command's words, 2 where there is no such command,
    3 where it could not be tried to the end; why is said."""
    try:
        words = find_command(command)
    except BenchError as error:
        say(f"{name}: {error}")
        return 2
    try:
        return trial(words)
    except (BenchError, OSError) as error:
        say(f"{name}: {error}")
        return 3


def say(text: str) -> None:
    """A line on standard error, at once: standard output is for the results."""
    print(text, file=sys.stderr, flush=True)
