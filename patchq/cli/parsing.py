"""From words to a verb and its arguments.

The flags of every command stand before the verb or behind it.  What is wrong is a `UsageError` in
one line that says how it would be right.
"""

from __future__ import annotations

import argparse
import gc
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Never

from patchq import __version__
from patchq.cli import arguments
from patchq.cli.verbs import GROUPS, VERBS
from patchq.core.model.names import suggestion
from patchq.gate.errors import UsageError

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
    """Parser that tells in one sentence what is wrong, and what to do."""

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
        """Return what is missing, by an example, and where to look."""
        below = next((one.choices for one in self._actions if isinstance(one.choices, dict)), None)
        if below:
            return (
                f"name one of {', '.join(below)}: `{self.prog} {next(iter(below))}`",
                self._help(),
            )
        what, cure = _MISSING.get(missing[0], (f"expected {missing[0]}", None))
        files = [str(one.metavar) for one in self._actions if one.nargs == "+"]
        words = dict.fromkeys((*files, *missing))
        example = " ".join(f"{one} TEXT" if one.startswith("--") else one for one in words)
        return f"{what}: `{self.prog} {example}`", cure or self._help()


def sort(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flags of every command, and all other words: the verb and what is its own."""
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
    """Parse the words; only the verb that is called is imported, and none for help on all."""
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
    module = _module(verb)
    own = Parser(f"patchq {verb}", description=VERBS.get(verb), epilog=_EPILOG)
    arguments.add(own, getattr(module, "ARGUMENTS", ()))
    args.verb, args.run = verb, module.run
    gc.freeze()  # what was imported stays: no collection has to look through it
    return own.parse_args(others, args)


def whole(each: Callable[[argparse.Action], None] = lambda action: None) -> argparse.ArgumentParser:
    """One parser of all verbs, for what is made of it; every verb is imported.  `each` is called
    with the action for each argument of a verb."""
    parser = _common()
    parser.epilog = None
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", prog="patchq")
    for verb, purpose in VERBS.items():
        own = verbs.add_parser(verb, help=purpose, description=purpose)
        arguments.add(own, getattr(_module(verb), "ARGUMENTS", ()), each)
    return parser


def _module(verb: str) -> ModuleType:
    return import_module(f"patchq.cli.{verb.replace('-', '_')}")


def listed() -> Iterator[tuple[str, list[str]]]:
    """The verbs by their groups."""
    for group, names in GROUPS.items():
        yield group, list(names)
    grouped = {name for names in GROUPS.values() for name in names}
    if others := [name for name in VERBS if name not in grouped]:
        yield "more", others


def table() -> str:
    """The verbs by their groups, as text."""
    lines = []
    for group, names in listed():
        lines += [f"{group}:", *(f"    {name:<12} {VERBS[name]}" for name in names), ""]
    return "\n".join(lines)


def _common() -> argparse.ArgumentParser:
    """The parser of what every command takes."""
    parser = Parser(
        "patchq",
        usage="patchq [-C DIR] [--config FILE] [--json] [-q | -v] COMMAND …",
        description="Changes by LLM agents, as commits that people review.",
        epilog=f"{table()}\nThe options go before the command or behind it.\n"
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
