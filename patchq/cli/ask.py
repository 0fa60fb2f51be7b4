"""`patchq ask`: ask the configured model for edits of files; they take every response's way."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from patchq.cli import common, prompt
from patchq.land import worker
from patchq.llm import request
from patchq.model.names import REQUEST, batch_id
from patchq.model.report import Report
from patchq.pipeline.requests import Desk

HELP = "ask the configured model for edits of files, and put them through the queue"
_LONGEST_NAME = 40


def add_arguments(parser: ArgumentParser) -> None:
    prompt.add_request(parser)
    parser.add_argument(
        "--mode", choices=("review", "auto"), help="`review` applies nothing unseen"
    )


def run(args: Namespace) -> int:
    """Ask, decide, and send retry prompts on as `llm.auto_retry` allows; prints each verdict."""
    world = common.open_world(args)
    asked = request.write(prompt.asked(args, world.repo))
    name = batch_id(args.task)[:_LONGEST_NAME].strip(".-_") or "ask"
    last: list[Report] = []

    def tell(report: Report) -> None:
        last[:] = [report]
        common.say(args, report)

    world.desk = desk = Desk(world)
    args.opened.callback(desk.close)
    desk.take(replace(world.queue.adopt(asked, name + REQUEST), request=True))
    while desk.open:
        worker.work(desk.answered(wait=1.0), world, tell)
    return 1 if any(report["state"] == "rejected" for report in last) else 0
