"""`patchq ask`: ask the configured model for edits of files; they take every response's way."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, opening, output, prompt
from patchq.core.model.names import REQUEST, batch_id
from patchq.llm import request

_LONGEST_NAME = 40


ARGUMENTS = (
    *prompt.REQUEST,
    arguments.Argument(
        "--mode", choices=("review", "auto"), help="`review` applies nothing unseen"
    ),
)


def run(args: Namespace) -> int:
    """Ask, decide, and send retry prompts on as `llm.auto_retry` allows; print each verdict."""
    gate = opening.gate(args)
    question = request.write(prompt.question(args, gate.location.repo.workdir))
    name = batch_id(args.task)[:_LONGEST_NAME].strip(".-_") or "ask"
    verdicts = output.Verdicts(args)
    gate.ask(question, name + REQUEST, verdicts)
    return int(verdicts.states[-1:] == ["rejected"])
