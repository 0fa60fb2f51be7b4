"""Parsing and running of one command, and printing of its fault.

Everything that can go wrong ends in one line on standard error and an exit code: 2 for usage and
configuration, 3 for faults, 75 when another instance holds the queue, 130 when interrupted.  The
flags of every command stand before the verb or behind it.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Never

from patchq import __version__
from patchq.cli import arguments
from patchq.core.model.names import suggestion
from patchq.core.text.quote import visible
from patchq.gate.errors import CRASHED, Fault, UsageError, fault_of

# Each verb, the module that has it, and what it is for.
VERBS = {
    "setup": ("setup", "have agents' clients find patchq here, and prove that each can start it"),
    "init": ("admin", "make the queue and a commented .patchq.yaml; safe to repeat"),
    "watch": ("serve", "serve the queue until stopped"),
    "stop": ("serve", "stop the daemon after the change in hand"),
    "service": ("serve", "serve this repository by systemd, or no longer"),
    "run": ("serve", "work off what waits, then exit (for cron and CI)"),
    "submit": ("feed", "drop a response into the queue; prints its id"),
    "wait": ("feed", "wait for the verdict on a change, or for a later state of it"),
    "check": ("feed", "dry run: plan, diff and verdict of a response"),
    "apply": ("feed", "take one response through the whole pipeline now"),
    "status": ("look", "list what waits for you, for agents, and what is held"),
    "log": ("look", "list the changes, newest verdict first"),
    "show": ("show", "show a change: its page, its diff, or its report as JSON"),
    "events": ("show", "tell of every change of state, as it comes or since an event"),
    "review": ("serve", "look at what waits, and decide, on a page in the browser"),
    "accept": ("decide", "land a proposal on its target"),
    "train": ("serve", "land what was accepted and waits; the daemon does so by itself"),
    "send-back": ("decide", "ask for changes of a proposal, in words that its agent gets"),
    "discard": ("decide", "take a proposal away; its commit is kept, and `log` tells it"),
    "revert": ("decide", "take back a change that landed"),
    "retry": ("decide", "decide again on a response, on the branches as they are now"),
    "prompt": ("model", "print the prompt that asks a model for edits of files"),
    "ask": ("model", "ask the configured model for edits of files, and put them through the queue"),
    "anchors": ("model", "print ranked anchor candidates of a file, as JSON"),
    "formats": ("model", "list the formats, or print one's instructions for a model"),
    "stats": ("show", "count verdicts, how quotes matched, and reasons"),
    "hooks": ("admin", "list the shipped hooks, put them to work, or take them away again"),
    "instructions": (
        "setup",
        "print the text that teaches an agent to feed patchq and to read its report",
    ),
    "worker": (
        "serve",
        "decide on what a cluster's machines submit, and land it on the shared remote",
    ),
    "cluster": ("serve", "the database that carries the queue of many machines"),
    "forge": ("serve", "keep proposals and the pull requests of a forge in step"),
    "mcp": ("serve", "serve the queue as tools, to agents that speak MCP"),
    "config": ("admin", "check the configuration, or print a sample or its JSON schema"),
    "completion": ("admin", "print what a shell needs to complete patchq's words"),
    "doctor": ("admin", "check repository, queue and system; each finding with its cure"),
    "backup": ("admin", "write a copy of the queue's store, to put back as .patchq/store.db"),
    "fsck": (
        "admin",
        "check the queue against the repository; --repair rebuilds what can be derived",
    ),
}

# The verbs by what one is about to do; the others are listed behind them.
GROUPS = {
    "every day": ("watch", "status", "show", "accept", "send-back", "review"),
    "begin": ("setup", "init", "doctor", "config", "hooks", "completion"),
    "serve": ("run", "stop", "service"),
    "hand in": ("submit", "wait", "check", "apply", "instructions", "mcp"),
    "look": ("log", "events", "stats"),
    "decide": ("discard", "retry", "revert"),
    "ask a model": ("prompt", "ask", "anchors", "formats"),
}
GROUPS["more"] = tuple(verb for verb in VERBS if not any(verb in some for some in GROUPS.values()))

_COMMON = ("--json", "--quiet", "--verbose", "--config")
_ALONE = ("--json", "-q", "--quiet", "-v", "--verbose")
_TAKING = ("-C", "--config")
_EPILOG = "`-C DIR`, `--config FILE`, `--json`, `-q` and `-v` are taken as well: patchq --help"


# The hint on a missing argument, and where to look for it.
_MISSING = {
    "ID": ("name a change", "`patchq status` lists them"),
    "FILE": ("name a file", None),
    "SHELL": ("name a shell", None),
    "--task": ("describe the task", None),
}


class Parser(argparse.ArgumentParser):
    """Parser that reports a mistake in one sentence, with a hint."""

    def error(self, message: str) -> Never:
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            names = choice[2].replace("'", "").split(", ")
            at = re.match(r"argument ([^:/]*)", message)
            what = f" for {at[1]}" if at and at[1] != "WHAT" else ""
            cure = suggestion(choice[1], names, f"one of {', '.join(names)}")
            raise UsageError(f"{choice[1]!r} is unknown{what}", cure)
        if unknown := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            flags = {name for name in self._option_string_actions if name.startswith("--")}
            cure = suggestion(unknown[1], sorted({*flags, *_COMMON}), self._help())
            raise UsageError(f"there is no option {unknown[1]}", cure)
        if missing := re.match("the following arguments are required: (.*)", message):
            raise UsageError(*self._example(missing[1].split(", ")))
        raise UsageError(message, self._help())

    def _help(self) -> str:
        return f"see `{self.prog} -h`"

    def _example(self, missing: Sequence[str]) -> tuple[str, str]:
        below = next((one.choices for one in self._actions if isinstance(one.choices, dict)), None)
        if below:
            return (
                f"name one of {', '.join(below)}: `{self.prog} {next(iter(below))}`",
                self._help(),
            )
        what, cure = _MISSING.get(missing[0], (f"expected {missing[0]}", None))
        needed = [one for one in self._actions if not one.option_strings]
        words = dict.fromkeys(
            (*(str(one.metavar) for one in needed if one.nargs in (None, "+")), *missing)
        )
        example = " ".join(f"{one} TEXT" if one.startswith("--") else one for one in words)
        return f"{what}: `{self.prog} {example}`", cure or self._help()

    def complete(self, kinds: Mapping[str, object]) -> None:
        """Set the completion of arguments that have no choices."""
        for action in self._actions:
            if kind := kinds.get(str(action.metavar)):
                action.complete = kind  # type: ignore[attr-defined]
            if isinstance(action.choices, dict):
                for below in action.choices.values():
                    below.complete(kinds)


def sort(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the flags of every command, and all other words.

    The other words are the verb and its own arguments.
    """
    ours: list[str] = []
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            rest += [word, *left]
        elif word in _TAKING:
            ours += [word, *(value for value in [next(left, None)] if value is not None)]
        elif word in _ALONE or word.startswith(("--config=", "-C")):
            ours.append(word)
        else:
            rest.append(word)
    return ours, rest


def parse(ours: Sequence[str], rest: Sequence[str]) -> argparse.Namespace:
    """Parse the words, and return the arguments with the verb to run.

    Only the verb that is called is imported.
    """
    verb, *others = rest or ("overview",)
    if verb == "help":
        verb, others = (others[0], ["--help"]) if others else ("--help", [])
    parser = _common()
    if verb.startswith("-"):  # help, the version, or a mistake
        ours = [verb, *ours]
    args = parser.parse_args(ours)
    if verb not in VERBS and rest:
        cure = suggestion(verb, VERBS, "`patchq --help` lists them")
        raise UsageError(f"there is no command {verb!r}", cure)
    _, purpose = VERBS.get(verb, ("", ""))
    own = Parser(f"patchq {verb}", description=purpose, epilog=_EPILOG)
    args.verb, args.run = verb, _load(verb, own)
    gc.freeze()  # what was imported stays: no collection has to look through it
    return own.parse_args(others, args)


def whole() -> Parser:
    """Return one parser of all verbs, each of which is imported."""
    parser = _common()
    parser.epilog = None
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", prog="patchq")
    for verb, (_, purpose) in VERBS.items():
        _load(verb, verbs.add_parser(verb, help=purpose, description=purpose))
    return parser


def _load(verb: str, parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    name, _ = VERBS.get(verb, ("look", ""))
    module = import_module(f"patchq.cli.{name}")
    arguments.add(parser, module.ARGUMENTS.get(verb, ()))
    run: Callable[[argparse.Namespace], int] = getattr(module, verb.replace("-", "_"))
    return run


def _common() -> Parser:
    table = ""
    for group, names in GROUPS.items():
        verbs = "".join(f"    {name:<12} {VERBS[name][1]}\n" for name in names)
        table += f"{group}:\n{verbs}\n"
    parser = Parser(
        "patchq",
        usage="patchq [-C DIR] [--config FILE] [--json] [-q | -v] COMMAND …",
        description="Changes by LLM agents, as commits that people review.",
        epilog=f"{table}The options go before the command or behind it.\n"
        "`patchq COMMAND --help` tells what a command takes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-C", dest="directories", metavar="DIR", action="append", default=[],
        help="run as if started in DIR; a further one is below it",
    )  # fmt: skip
    parser.add_argument("--config", metavar="FILE", type=Path, help="another configuration file")
    parser.add_argument("--json", action="store_true", help="print JSON, errors too")
    loud = parser.add_mutually_exclusive_group()
    loud.add_argument("-q", "--quiet", action="store_true", help="print refusals and faults only")
    loud.add_argument("-v", "--verbose", action="store_true", help="log more")
    parser.add_argument("--version", action="version", version=f"patchq {__version__}")
    return parser


# ---------------------------------------------------------------- calling


def call(words: Sequence[str]) -> int:
    """Run one command, and return its exit code."""
    _settle()
    code: int = 0
    ours, rest = sort(words)
    json = "--json" in ours
    try:
        try:
            args = parse(ours, rest)
        finally:
            gc.enable()
        args.directory = _enter(args.directories)
        with ExitStack() as args.opened:
            code = args.run(args)
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # of the parser: help, or usage
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        forget_reader()
        return code
    except Exception as error:
        fault = fault_of(error, "this is a defect of patchq; report it with the lines above")
        if fault.code == CRASHED and not json:
            import traceback  # only who crashes needs it

            traceback.print_exc()
        tell(fault, json=json)
        return fault.exit_status


def _enter(directories: Sequence[str]) -> Path:
    for name in filter(None, directories):
        try:
            os.chdir(name)
        except OSError as error:
            raise UsageError(
                f"cannot change to {name}: {error.strerror}", "name a directory behind -C"
            ) from None
    return Path.cwd() if directories else Path()


# ---------------------------------------------------------------- streams


def _settle() -> None:
    """Make the three standard streams usable, with UTF-8 output in every locale.

    A closed one would lend its number to the next file that is opened.  JSON, prompts and diffs
    have to be UTF-8.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def forget_reader() -> None:
    """Make all further writes to standard output succeed, at the interpreter's end too.

    Its reader is gone; a command that works goes on working, and its exit code stays true.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def tell(fault: Fault, *, json: bool, id: str | None = None) -> None:
    """Print a fault, and what to do about it, to standard error.

    A usage error of one line has its hint on the same line.  `id` names the batch that the fault is
    about, where there are several.
    """
    if json:
        from patchq.gate.report.document import printed  # only programs need it

        error = {"code": fault.code, "message": fault.message, "hint": fault.hint}
        print(printed({"error": error | ({"id": id} if id else {})}), file=sys.stderr)
        return
    between = "; " if isinstance(fault, UsageError) and "\n" not in fault.message else "\n  "
    text = between.join(filter(None, (fault.message, fault.hint)))
    about = f"{id}: " if id else ""
    code = "" if fault.code == UsageError.code else f"{fault.code}: "
    print(visible(f"patchq: {about}{code}{text}", keep="\n"), file=sys.stderr)
