"""`patchq discard`: take a proposal or a held batch away."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import accept, common
from patchq.review import decide

HELP = "take a proposal away; its commit stays at refs/patchq/discarded/ID"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def run(args: Namespace) -> int:
    return accept.tell(args, decide.discard(common.open_world(args, targeted=False), args.id))
