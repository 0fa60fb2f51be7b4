"""`patchq show`: one batch's page, its diff, or its report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from msgspec import to_builtins

from patchq.cli import arguments, listing, opening, output, screen, split
from patchq.cli.screen import Line
from patchq.cli.streams import put
from patchq.core.text.quote import visible
from patchq.gate.api import words
from patchq.gate.api.rows import ChangeRow, Pending
from patchq.gate.report import document
from patchq.gate.report.page import to_markdown

ARGUMENTS = (
    arguments.BATCH,
    (
        arguments.Argument("--diff", action="store_true", help="the unified diff only"),
        arguments.Argument("--split", action="store_true", help="the change side by side"),
        arguments.Argument("--report", action="store_true", help="the report as JSON"),
    ),
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    found = gate.find(args.id)
    if isinstance(found, Pending):
        return output.emit(args, found.to_json(), words.pending(found))
    report = found.report
    if args.split:
        files = gate.sides(report)
        if args.json:
            return output.emit(
                args, {"id": report.id, "files": to_builtins([file.to_json() for file in files])}
            )
        if files:
            screen.show(split.lines(files))
        else:
            _print(report.diff)
    elif args.diff and args.json:
        put(document.printed({"id": report.id, "diff": report.diff}))
    elif args.diff:
        _print(report.diff)
    elif args.report or args.json:
        put(document.dumps(report), end="")
    else:
        _print(_page(found))
    return 0


def _page(row: ChangeRow) -> str:
    """Return the report's page, with facts for people below its title."""
    title, _, page = to_markdown(row.report, person=True).partition("\n")
    # A refusal's page goes back to its model as it is.
    for_people = row.report.state != "rejected" or screen.is_terminal()
    head = "".join(f"\n    {line}" for line in listing.heading(row)) if for_people else ""
    note = f"\nNote: {row.note}\n" if row.note else ""
    return "\n".join(filter(None, (title, head, page))) + note


def _print(text: str) -> None:
    """Print byte for byte in a pipe; coloured, and harmless, on a terminal."""
    if screen.is_terminal():
        screen.show(_coloured(text))
    else:
        put(text, end="")


_STYLES = {"diff --git ": "bold", "@@ ": "cyan", "+": "green", "-": "red", "#": "bold"}


def _coloured(text: str) -> Iterator[Line]:
    for line in text.removesuffix("\n").split("\n"):
        style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
        yield screen.plain(visible(line, keep="\t"), style)
