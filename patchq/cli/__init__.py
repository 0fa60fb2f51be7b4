"""The command line: one module per verb; here they are found, parsed and called.

Everything that can go wrong ends in one line on standard error and an exit code: 2 for usage and
configuration, 3 for faults, 75 when another instance holds the queue, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from patchq import __version__
from patchq.cli import arguments
from patchq.git import records
from patchq.model.errors import Fault, UsageError, disk_fault
from patchq.text.quote import visible

VERBS = {
    "init": "make the queue and a commented .patchq.yaml; safe to repeat",
    "watch": "serve the queue until stopped",
    "stop": "stop the daemon after the batch in hand",
    "run": "work off what waits, then exit (for cron and CI)",
    "submit": "drop a response into the queue; prints its id",
    "check": "dry run: plan, diff and verdict of a response",
    "apply": "take one response through the whole pipeline now",
    "status": "show the daemon, the queue's depth, and what waits or is held",
    "log": "list the batches, newest verdict first",
    "show": "show a batch: its page, its diff, or its report as JSON",
    "accept": "land a proposal on its target",
    "discard": f"take a proposal away; its commit stays at {records.DISCARDED + 'ID'}",
    "revert": "take a batch that landed back",
    "retry": "decide again on a response, on the branches as they are now",
    "prompt": "print the prompt that asks a model for edits of files",
    "ask": "ask the configured model for edits of files, and put them through the queue",
    "anchors": "print ranked anchor candidates of a file, as JSON",
    "formats": "list the formats, or print one's instructions for a model",
    "stats": "count verdicts, match rungs and reasons",
    "hooks": "list the shipped hooks, put them to work, or take them away again",
    "mcp": "serve the queue as tools, to agents that speak MCP",
    "config": "check the configuration, or print a sample or its JSON schema",
    "doctor": "check repository, queue and system; each finding with its cure",
    "fsck": "check the queue against the repository; --repair rebuilds what can be derived",
}
"""Each verb, which is a module, and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is the return value."""
    _settle()
    code: int = 0
    try:
        args = _parsed(list(sys.argv[1:] if argv is None else argv))
        args.directory = _enter(args.directories)
        with ExitStack() as args.opened:
            code = args.run(args)
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # of the parser: help, or usage
        return int(stop.code or 0)
    except Fault as fault:
        _complain(fault)
        return fault.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _forget_reader()
        return code
    except Exception as error:
        if isinstance(error, OSError) and (broken := disk_fault(error)):
            _complain(broken)
            return broken.exit_status
        return _crashed(error)


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """What the words say; only verbs that may be the one called are imported, and none for help on
    all."""
    gc.disable()
    parser = argparse.ArgumentParser(
        prog="patchq", description="The gate between LLM agents and git branches."
    )
    parser.add_argument(
        "-C", dest="directories", metavar="DIR", action="append", default=[],
        help="run as if started in DIR; a further one is below it",
    )  # fmt: skip
    parser.add_argument("--config", metavar="FILE", type=Path, help="another configuration file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    loud = parser.add_mutually_exclusive_group()
    loud.add_argument("-q", "--quiet", action="store_true", help="print refusals and faults only")
    loud.add_argument("-v", "--verbose", action="store_true", help="log more")
    parser.add_argument("--version", action="version", version=f"patchq {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    called = dict.fromkeys(word for word in words if word in VERBS)
    for name in called or VERBS:
        sub = verbs.add_parser(name, help=VERBS[name], description=VERBS[name])
        if called:
            verb = import_module(f"patchq.cli.{name}")
            arguments.add(sub, getattr(verb, "ARGUMENTS", ()))
            sub.set_defaults(run=verb.run)
    gc.freeze()  # what was imported stays: no collection has to look through it
    gc.enable()
    return parser.parse_args(words)


def _enter(directories: Sequence[str]) -> Path:
    """Go where `-C` says, as git does: every relative path of the command is below it."""
    for name in filter(None, directories):
        try:
            os.chdir(name)
        except OSError as error:
            raise UsageError(f"cannot change to {name}: {error.strerror}") from None
    return Path.cwd() if directories else Path()


def _complain(fault: Fault) -> None:
    text = f"patchq: {fault.code}: {fault.message}" + (f"\n  {fault.hint}" if fault.hint else "")
    print(visible(text, keep="\n"), file=sys.stderr)


def _crashed(error: Exception) -> int:
    import tempfile  # only who crashes needs them
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="patchq-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        log.write(f"patchq {__version__}, Python {sys.version}\n{sys.argv}\n\n")
        traceback.print_exception(error, file=log)
    print(
        f"patchq: fault.crashed: {type(error).__name__}: {error}\n"
        f"  this is a defect of patchq; {log.name} has what a report of it needs",
        file=sys.stderr,
    )
    return 3


def _settle() -> None:
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
    """Print at once; where nobody reads any more, that is all right."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        _forget_reader()


def _forget_reader() -> None:
    """Nobody reads standard output any more: nothing written there fails from now on, at the
    interpreter's end neither.  A command that works goes on working, and its exit code stays
    true."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, 1)
    os.close(nobody)
