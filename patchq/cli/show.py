"""`patchq show`: one batch's page, its diff, or its report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from msgspec import to_builtins

from patchq.cli import arguments, batches, listing, output, places, screen, split
from patchq.cli.screen import Line
from patchq.cli.streams import put
from patchq.core.text.quote import visible
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report import document
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report
from patchq.gate.review import comparison

ARGUMENTS = (
    arguments.BATCH,
    (
        arguments.Argument("--diff", action="store_true", help="the unified diff only"),
        arguments.Argument("--split", action="store_true", help="the change side by side"),
        arguments.Argument("--report", action="store_true", help="the report as JSON"),
    ),
)


def run(args: Namespace) -> int:
    context = places.open_context(args)
    if pending := batches.pending(context, args.id):
        return output.emit(args, pending.to_json(), output.pending(pending))
    report, note = batches.seen(context, *batches.find(context, args.id))
    if args.split:
        files, changes = comparison.rows_of(context, report)
        if args.json:
            return output.emit(args, {"id": report.id, "files": to_builtins(files)})
        if files:
            screen.show(split.lines(files, changes), context.repo)
        else:
            _print(report.diff, context.repo)
    elif args.diff:
        diff = {"id": report.id, "diff": report.diff}
        if args.json:
            put(document.printed(diff))
        else:
            _print(report.diff, context.repo)
    elif args.report or args.json:
        put(document.dumps(report), end="")
    else:
        title, _, page = to_markdown(report).partition("\n")
        # A refusal's page goes back to its model as it is.
        for_people = report.state != "rejected" or screen.is_terminal()
        facts = [*listing.heading(report), *_risk(context, report)] if for_people else []
        head = "".join(f"\n    {line}" for line in facts)
        told = f"\nNote: {note}\n" if note else ""
        _print("\n".join((title, *([head] if head else []), page)) + told, context.repo)
    return 0


def _risk(context: RepoContext, report: Report) -> Iterator[str]:
    """How much a proposal asks of who decides on it."""
    if report.state == "proposed":
        yield listing.risk_line(comparison.risk_of(context, report).to_json())


def _print(text: str, repo: Repository) -> None:
    """Byte for byte in a pipe; coloured, and harmless, on a terminal."""
    if screen.is_terminal():
        screen.show(_coloured(text), repo)
    else:
        put(text, end="")


_STYLES = {"diff --git ": "bold", "@@ ": "cyan", "+": "green", "-": "red", "#": "bold"}


def _coloured(text: str) -> Iterator[Line]:
    for line in text.removesuffix("\n").split("\n"):
        style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
        yield screen.plain(visible(line, keep="\t"), style)
