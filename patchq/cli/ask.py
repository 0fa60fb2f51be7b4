"""`patchq ask`: ask the configured model for edits of files; they take every response's way."""

from __future__ import annotations

from argparse import Namespace

from msgspec.structs import replace

from patchq.cli import arguments, opening, output, prompt
from patchq.core.model.names import REQUEST, batch_id
from patchq.gate.api import applying
from patchq.gate.land import worker
from patchq.gate.pipeline.requests import RequestDesk
from patchq.llm import request

_LONGEST_NAME = 40


ARGUMENTS = (
    *prompt.REQUEST,
    arguments.Argument(
        "--mode", choices=("review", "auto"), help="`review` applies nothing unseen"
    ),
)


def run(args: Namespace) -> int:
    """Ask, decide, and send retry prompts on as `llm.auto_retry` allows; prints each verdict.  In a
    cluster a worker asks, and the first verdict is what is waited for."""
    session = opening.gate(args).session()
    question = request.write(prompt.question(args, session.repo.workdir))
    name = batch_id(args.task)[:_LONGEST_NAME].strip(".-_") or "ask"
    verdicts = output.Verdicts(args)
    if session.config.has_cluster:
        verdicts(applying.handed_over(session, question, name + REQUEST))
        return verdicts.exit_code
    desk = RequestDesk(session)
    session = replace(session, desk=desk)
    args.opened.callback(desk.close)
    desk.take(replace(session.queue.adopt(question, name + REQUEST), request=True))
    while desk.open:
        worker.work(desk.answered(wait=1.0), session, verdicts)
    return int(verdicts.states[-1:] == ["rejected"])
