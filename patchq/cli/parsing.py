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
from patchq.core.model.names import nearest
from patchq.gate.errors import UsageError

_ALONE = ("--json", "-q", "--quiet", "-v", "--verbose")
_TAKING = ("-C", "--config")
_EPILOG = "`-C DIR`, `--config FILE`, `--json`, `-q` and `-v` are taken as well: patchq --help"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with what was meant, or how the command is called."""

    def error(self, message: str) -> Never:
        near = None
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            near = nearest(choice[1], choice[2].replace("'", "").split(", "))
        elif unknown := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            names = [name for name in self._option_string_actions if name.startswith("--")]
            near = nearest(unknown[1], {*names, *_ALONE, *_TAKING} - {"-q", "-v", "-C"})
        usage = " ".join(self.format_usage().split())
        raise UsageError(message, f"did you mean `{near}`?" if near else usage)


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
    """What the words say; only the verb that is called is imported, and none for help on all."""
    verb, *others = rest or ("overview",)
    if verb == "help":
        verb, others = (others[0], ["--help"]) if others else ("--help", [])
    parser = _common()
    if verb.startswith("-"):  # help, the version, or a mistake
        ours = [verb, *ours]
    args = parser.parse_args(ours)
    if verb not in VERBS and rest:
        near = nearest(verb, VERBS)
        cure = f"did you mean `patchq {near}`?" if near else "`patchq` alone lists the commands"
        raise UsageError(f"there is no command {verb!r}", cure)
    module = _module(verb)
    own = Parser(f"patchq {verb}", description=VERBS.get(verb), epilog=_EPILOG)
    arguments.add(own, getattr(module, "ARGUMENTS", ()))
    args.verb, args.run = verb, module.run
    gc.freeze()  # what was imported stays: no collection has to look through it
    return own.parse_args(others, args)


def whole(each: Callable[[argparse.Action], None] = lambda action: None) -> argparse.ArgumentParser:
    """One parser of all verbs, for what is made of it; every verb is imported.  `each` is called
    with what stands for each argument of a verb."""
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
        description="The gate between LLM agents and git branches.",
        epilog=f"{table()}\nThe options stand before the command or behind it.\n"
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
