"""What the hooks that see a work tree share: the files of the batch, and running a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CANNOT_START = 127
"""The exit code that says that the hook could not do its work, as opposed to a refusal."""


def files(*suffixes: str) -> list[str]:
    """The batch's paths that are files now, relative to the work tree; all, or those with one of
    the suffixes."""
    listed = os.environ.get("PATCHQ_FILES")
    if listed is None:
        print("PATCHQ_FILES is not set: patchq starts this hook", file=sys.stderr)
        sys.exit(CANNOT_START)
    names = [os.fsdecode(name) for name in Path(listed).read_bytes().split(b"\0") if name]
    return [
        name
        for name in names
        if (not suffixes or name.endswith(suffixes))
        and Path(name).is_file()
        and not Path(name).is_symlink()
    ]


def touches(path: str) -> bool:
    """Whether the batch changed the path."""
    listed = os.environ.get("PATCHQ_FILES", os.devnull)
    return os.fsencode(path) in Path(listed).read_bytes().split(b"\0")


def before(path: str) -> bytes | None:
    """The file's bytes before the batch; None if it was not there, or cannot be told."""
    done = subprocess.run(["git", "show", f"HEAD^:{path}"], capture_output=True, check=False)
    return None if done.returncode else done.stdout


def fixing() -> bool:
    """Whether the hook may change files: `fixes: true` in the configuration, of which patchq says
    so in PATCHQ_FIXES."""
    return os.environ.get("PATCHQ_FIXES", "") not in ("", "0")


def find(*names: str) -> str:
    """The first of these programs that is installed; without one, the hook cannot start."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        print(f"{' or '.join(names)}: not found on PATH", file=sys.stderr)
        sys.exit(CANNOT_START)
    return found


def run(command: Sequence[str]) -> int:
    """Run a program in the work tree; its exit code as a verdict, 0 to 125."""
    code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    return code if 0 <= code <= 125 else 1
