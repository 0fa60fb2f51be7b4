"""Lines on a terminal: coloured by rich, which heeds NO_COLOR and TERM=dumb, and shown by the
program that git uses for that, with git's own settings for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from shutil import get_terminal_size, which
from typing import TextIO, cast

from rich.console import Console
from rich.text import Text


def show(lines: Iterable[Sequence[tuple[str, str]]], *, crop: bool, paged: bool) -> None:
    """Print the lines, pieces with their styles, as they come; through git's pager, if any."""
    with _reader(_program() if paged else "cat") as out:
        width = get_terminal_size().columns
        console = Console(file=out, force_terminal=True, width=width, highlight=False)
        for line in lines:
            text = Text.assemble(*line, no_wrap=crop, overflow="ellipsis" if crop else None)
            console.print(text, soft_wrap=not crop, no_wrap=crop, crop=crop)


def _program() -> str:
    """Return the command that git shows its output with."""
    asked = subprocess.run(["git", "var", "GIT_PAGER"], capture_output=True, text=True)
    found = asked.stdout.strip()
    there = found and which(found.split()[0]) and os.environ.get("TERM") != "dumb"
    return found if there else "cat"


@contextmanager
def _reader(program: str) -> Iterator[TextIO]:
    """Yield the place to print to: the pager's input, which may end before we do, or the screen."""
    if program == "cat":
        yield sys.stdout
        return
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    sys.stdout.flush()
    with subprocess.Popen(
        ["/bin/sh", "-c", program],
        stdin=subprocess.PIPE,
        env=environment,
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
    ) as process:
        try:
            with suppress(BrokenPipeError):
                yield cast(TextIO, process.stdin)
        finally:
            # The keyboard's interrupt is the reader's from now on, as in git.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                with suppress(BrokenPipeError):
                    assert process.stdin
                    process.stdin.close()
                process.wait()
            finally:
                signal.signal(signal.SIGINT, before)
