"""`patchq doctor`: findings on machine, repository and queue, each with its cure."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator

from patchq.cli import arguments, opening, output
from patchq.core.text.quote import visible
from patchq.gate.service.check import Finding

_WORDS = {"fatal": "FATAL", "todo": "TO DO", "weaker": "weaker", "ok": "ok"}


ARGUMENTS = (
    arguments.Argument(
        "--before-start",
        action="store_true",
        help="fail only for what keeps the daemon from working (for service managers)",
    ),
)


def run(args: Namespace) -> int:
    """Show the findings; return 1 if one needs to be acted on."""
    found = list(opening.gate(args).checks())
    failing = ("fatal",) if args.before_start else ("fatal", "todo")
    wrong = any(finding.level in failing for finding in found)
    shown = [f for f in found if not args.quiet or f.level != "ok"]
    if shown or args.json:
        rows = [
            {"what": f.what, "level": f.level, "message": f.message, "cure": f.cure} for f in shown
        ]
        output.emit(args, {"ok": not wrong, "findings": rows}, *_lines(shown))
    return 1 if wrong else 0


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        yield visible(f"{_WORDS[finding.level]:<7} {finding.what:<19} {finding.message}")
        if finding.cure and finding.level != "ok":
            yield visible(f"{'':<27} -> {finding.cure}")
