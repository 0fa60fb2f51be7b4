"""The command lines of the benches, which are modules of packages."""

from __future__ import annotations

import argparse


def command_line(module: str, manual: str | None) -> argparse.ArgumentParser:
    """For `python -m MODULE`, described by the first paragraph of its docstring."""
    first = (manual or "").split("\n\n", 1)[0]
    return argparse.ArgumentParser(prog=f"python -m {module}", description=first)
