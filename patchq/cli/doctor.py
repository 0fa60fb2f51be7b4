"""`patchq doctor`: what keeps patchq from working here, and which promise is weaker than it could
be."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator

from msgspec.structs import asdict

from patchq.cli import arguments, opening, output
from patchq.core.text.quote import visible
from patchq.gate.api.location import database, target_of
from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, UsageError
from patchq.gate.pipeline.rules import difference
from patchq.gate.service.doctor import Finding, cluster, landing, queue, system

_WORDS = {"fatal": "FATAL", "todo": "TO DO", "weaker": "weaker", "ok": "ok"}


ARGUMENTS = (
    arguments.Argument(
        "--before-start",
        action="store_true",
        help="fail only for what keeps the daemon from working (for service managers)",
    ),
)


def run(args: Namespace) -> int:
    found = list(_look(args))
    failing = ("fatal",) if args.before_start else ("fatal", "todo")
    wrong = any(finding.level in failing for finding in found)
    shown = [f for f in found if not args.quiet or f.level != "ok"]
    if shown or args.json:
        answer = {"ok": not wrong, "findings": [asdict(finding) for finding in shown]}
        output.emit(args, answer, *_lines(shown))
    return 1 if wrong else 0


def _look(args: Namespace) -> Iterator[Finding]:
    try:
        location = opening.gate(args).location
    except Fault as fault:
        yield Finding("repository.format", "fatal", fault.message, fault.hint)
        yield from system.look_at_machine(None, None, None)
        return
    config, target = None, ""
    try:
        found = location.rules()
    except UsageError as error:
        for problem in error.message.splitlines():
            yield Finding("config", "fatal", problem, error.hint)
    else:
        config, target = found.config, target_of(found)
        yield Finding("config", "ok", found.title)
        if other := difference(location.repo, found):
            yield Finding("config.worktree", "weaker" if other[1] else "ok", *other)
    root = location.home / (config or Config()).queue.path
    yield from system.look_at_repository(location.repo, config, target)
    if config is not None:
        yield from landing.look(location.repo, config, root, target)
    yield from queue.look(root, location.repo.commondir, location.home, config)
    if config and config.has_cluster:
        yield from cluster.look(database(config), location.repo)
    yield from system.look_at_machine(location.repo, config, root, target)


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        yield visible(f"{_WORDS[finding.level]:<7} {finding.what:<19} {finding.message}")
        if finding.cure and finding.level != "ok":
            yield visible(f"{'':<27} -> {finding.cure}")
