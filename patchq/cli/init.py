"""`patchq init`: the queue's directories, the exclude entry, a commented configuration; and what
teaches agents, where that is asked for."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cli import output, places
from patchq.cli.arguments import Argument
from patchq.core.text.quote import visible
from patchq.gate.config import config_file
from patchq.gate.errors import UsageError
from patchq.gate.git import files, sharing
from patchq.gate.report import document

if TYPE_CHECKING:
    from patchq.cli.instructions.installing import Installation

ARGUMENTS = (
    Argument(
        "--agents",
        metavar="NAME,…",
        nargs="?",
        const="",
        help="write what teaches agents to feed patchq: for these, or for those used here",
    ),
    Argument("--target", dest="home", metavar="B", help="the home branch, whose rules count"),
    Argument("--remote", dest="home_remote", metavar="R", help="it is that branch of the remote"),
    Argument("--yes", action="store_true", help="write it without asking about each file"),
)
_SCHEMA = "schema.json"
"""Below the queue: where the sample has editors look for the schema."""
_ANSWERS = "[y]es, [n]o, [s]how, [a]ll, [q]uit"


def run(args: Namespace) -> int:
    if args.yes and args.agents is None:
        raise UsageError("--yes goes with --agents", "leave it out; nothing else is asked")
    location = places.find(args)
    planned = _planned(args, location)
    found = location.rules()
    queue = places.open_queue(args, location, found.config)
    path = location.draft
    created = [str(queue.root)]
    if not path.exists():
        # It says what runs, so no group may write it that umask keeps out.
        mode = 0o666 & ~max(sharing.childrens_umask(), 0)
        files.write(path, config_file.sample().encode(), mode=mode)
        created += [str(path), *location.how_it_counts()]
    _write_schema(queue.root / _SCHEMA)
    location.keep_out_of_status(queue.root)
    told = {"queue": str(queue.root), "config": str(path), "home": found.home and str(found.home)}
    if args.agents is None:
        return output.emit(args, told, *created)
    states = _installed(planned, ask=not args.yes)
    listed = [{"path": path, "state": state} for path, state in states]
    lines = [f"{state:<9} {path}" for path, state in states]
    if any(state == "written" for _, state in states):
        lines.append("commit these files, so that agents in other work trees read them, too")
    return output.emit(args, {**told, "agents": listed}, *created, *lines)


def _write_schema(path: Path) -> None:
    """Have editors find what the sample's first line names, as this patchq has it."""
    schema = f"{document.printed(config_file.json_schema(), indent=1)}\n".encode()
    if not path.is_file() or path.read_bytes() != schema:
        files.replace(path, schema, via=path.with_suffix(".tmp"))


def _planned(args: Namespace, location: places.Location) -> Sequence[Installation]:
    """What is to be written for agents; raises `UsageError` where nobody can be asked about it."""
    if args.agents is None:
        return ()
    from patchq.cli.instructions import installing  # only who teaches reads the forms

    if location.repo.workdir is None:
        raise UsageError(
            "a bare repository has no work tree in which agents would look",
            "run this in a clone of it, or see `patchq instructions`",
        )
    planned = installing.planned(args.agents, location.repo.workdir)
    there = sys.stdin.isatty() and sys.stdout.isatty() and not (args.json or args.quiet)
    changed = [one.path for one in planned if one.changes]
    if changed and not args.yes and not there:
        raise UsageError(
            f"this would write {', '.join(changed)}, and nobody is there to be asked",
            "say --yes, too; `patchq instructions` prints what it would write",
        )
    return planned


def _installed(planned: Sequence[Installation], *, ask: bool) -> list[tuple[str, str]]:
    """Write what is new, once a person agreed to it; each path, and what became of its file."""
    from patchq.cli.instructions import installing

    states, answer = [], "n" if ask else "a"
    for one in planned:
        if not one.changes:
            states.append((one.path, "unchanged"))
            continue
        if answer not in ("a", "q"):
            answer = _answer(one)
        if agreed := answer in ("y", "a"):
            installing.write(one)
        states.append((one.path, "written" if agreed else "declined"))
    return states


def _answer(one: Installation) -> str:
    """What a person says to one file; the end of input is a no to all that is left."""
    kind = "create" if one.before is None else "change"
    while True:
        print(f"{kind} {one.path} ({one.what})? {_ANSWERS}: ", end="", flush=True)
        line = sys.stdin.readline()
        answer = line.strip().lower()[:1] if line else "q"
        if answer in ("y", "n", "a", "q"):
            return answer
        if answer == "s":
            _show(one)


def _show(one: Installation) -> None:
    import difflib

    old, new = (
        (data or b"").decode("utf-8", "replace").splitlines() for data in (one.before, one.after)
    )
    for line in difflib.unified_diff(old, new, one.path, one.path, lineterm=""):
        print(visible(line, keep="\t"))
