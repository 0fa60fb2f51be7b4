"""What the benches read from a console and say to it: command lines, and lines meanwhile."""

from __future__ import annotations

import argparse
import sys


def command_line(module: str, manual: str | None) -> argparse.ArgumentParser:
    """For `python -m MODULE`, described by the first paragraph of its docstring."""
    first = (manual or "").split("\n\n", 1)[0]
    return argparse.ArgumentParser(prog=f"python -m {module}", description=first)


def say(text: str) -> None:
    """A line on standard error, at once: standard output is for the results."""
    print(text, file=sys.stderr, flush=True)
