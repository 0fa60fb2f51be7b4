"""One command: its words are parsed, its verb is called, and what goes wrong is printed.

Everything that can go wrong ends in one line on standard error and an exit code: 2 for usage and
configuration, 3 for faults, 75 when another instance holds the queue, 130 when interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from patchq import __version__
from patchq.cli import parsing, streams
from patchq.cli.telling import tell
from patchq.gate.errors import CRASHED, Fault, UsageError, disk_fault


def call(words: Sequence[str]) -> int:
    """Run one command; the exit code is the return value."""
    streams.settle()
    code: int = 0
    ours, rest = parsing.sort(words)
    json = "--json" in ours
    try:
        try:
            args = parsing.parse(ours, rest)
        finally:
            gc.enable()
        args.directory = _enter(args.directories)
        with ExitStack() as args.opened:
            code = args.run(args)
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # of the parser: help, or usage
        return int(stop.code or 0)
    except Fault as fault:
        tell(fault, json=json)
        return fault.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        streams.forget_reader()
        return code
    except Exception as error:
        if isinstance(error, OSError) and (broken := disk_fault(error)):
            tell(broken, json=json)
            return broken.exit_status
        crash = _crash(error)
        tell(crash, json=json)
        return crash.exit_status


def _enter(directories: Sequence[str]) -> Path:
    """Go where `-C` says, as git does: every relative path of the command is below it."""
    for name in filter(None, directories):
        try:
            os.chdir(name)
        except OSError as error:
            raise UsageError(
                f"cannot change to {name}: {error.strerror}", "name a directory behind -C"
            ) from None
    return Path.cwd() if directories else Path()


def _crash(error: Exception) -> Fault:
    """The fault that a defect of patchq is; a file has what a report of it needs."""
    import tempfile  # only who crashes needs them
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="patchq-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        log.write(f"patchq {__version__}, Python {sys.version}\n{sys.argv}\n\n")
        traceback.print_exception(error, file=log)
    fault = Fault(
        f"{type(error).__name__}: {error}",
        f"this is a defect of patchq; {log.name} has what a report of it needs",
    )
    fault.code = CRASHED
    return fault
