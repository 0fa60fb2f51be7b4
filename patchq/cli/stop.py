"""`patchq stop`: ask the daemon to finish the batch in hand and exit, or to leave that."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, opening, output

ARGUMENTS = (
    arguments.Argument(
        "--now", action="store_true", help="end its hooks, and leave the change to the next start"
    ),
)


def run(args: Namespace) -> int:
    def say(text: str) -> None:
        output.notice(args, f"waiting for {text}; `--now` ends that")

    pid = opening.gate(args).stop(say, now=args.now)
    text = f"process {pid} has stopped" if pid else "no daemon runs"
    return output.emit(args, {"stopped": pid}, text)
