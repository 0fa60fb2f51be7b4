"""The three standard streams: usable whatever the command was started with, and read or not."""

from __future__ import annotations

import io
import os
import sys


def settle() -> None:
    """Make the three standard streams usable, whatever the command was started with: one that is
    closed would lend its number to the next file that is opened.  What is printed is UTF-8 in every
    locale, as JSON, prompts and diffs have to be."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def put(text: str, end: str = "\n") -> None:
    """Print at once; do nothing if the reader is gone."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        forget_reader()


def forget_reader() -> None:
    """Make all further writes to standard output succeed, at the interpreter's end too.

    Its reader is gone; a command that works goes on working, and its exit code stays true.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
