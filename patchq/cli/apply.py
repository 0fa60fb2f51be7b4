"""`patchq apply`: one response through the whole pipeline now, without the inbox."""

from __future__ import annotations

from argparse import Namespace

from msgspec.structs import replace

from patchq.cli import arguments, confirm, opening, output
from patchq.gate.api import dry_run, handover
from patchq.gate.land import worker
from patchq.gate.report.schema import Report
from patchq.gate.report.sender import from_environment, with_header
from patchq.gate.review import restack

ARGUMENTS = (arguments.RESPONSE,)


def run(args: Namespace) -> int:
    session = opening.gate(args).session()
    data, name = arguments.read_response(args.file)
    data, _ = with_header(data, {}, from_environment())
    choice = None
    if args.file != "-" and confirm.possible(args, session.config):
        try:
            choice = confirm.Asker(session)(dry_run.unread(session, data, name))
        except confirm.Quit:
            return 130
    verdicts = output.Verdicts(args)
    if session.config.has_cluster:
        verdicts(handover.decided(session, data, name, choice))
        return verdicts.exit_code
    reports: list[Report] = []
    claim = session.queue.adopt(data, name, choice.to_json() if choice else None)
    claim = replace(claim, problem=dry_run.oversize(session, data))
    worker.work([claim], session, reports.append, choice)
    restack.settle(session)
    for report in reports:
        verdicts(report)
    return verdicts.exit_code
