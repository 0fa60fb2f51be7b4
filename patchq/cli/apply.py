"""`patchq apply`: one response through the whole pipeline now, without the inbox."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, confirm, opening, output

ARGUMENTS = (arguments.RESPONSE,)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    session = gate.session()
    data, name = arguments.read_response(args.file)
    ask = confirm.asker(args, session.config) if args.file != "-" else None
    verdicts = output.Verdicts(args)
    try:
        gate.apply(data, name=name, ask=ask, tell=verdicts)
    except confirm.Quit:
        return 130
    return verdicts.exit_code
