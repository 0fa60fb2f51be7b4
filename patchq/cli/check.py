"""`patchq check`: what would become of a response; nothing is written."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from hashlib import sha256
from pathlib import PurePath

from patchq import report
from patchq.cli import common
from patchq.envelope import open_response
from patchq.model import Envelope, Source
from patchq.names import batch_id
from patchq.pipeline import process
from patchq.queue import Claim
from patchq.queue.directory import DirectoryQueue
from patchq.report_md import to_markdown
from patchq.world import Choice, Tips

HELP = "dry run: plan, diff and verdict of a response"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the response, or - for standard input")


def run(args: Namespace) -> int:
    world = common.open_world(args, writes=False)
    data, name = common.read_response(args.file)
    opened = open_response(data)
    named = opened.header.id if isinstance(opened, Envelope) else None
    source = Source(name, sha256(data).hexdigest(), len(data))
    id = batch_id(named or PurePath(name).stem)
    if isinstance(world.queue, DirectoryQueue):
        id = world.queue.next_id(id)
    claim = Claim("", source, data, id=id)
    draft = process(claim, world, Tips(world), Choice(dry_run=True))
    told = report.to_json(draft.outcome())
    if args.json:
        common.say(args, told)
    else:
        print(f"would be {common.line(told)}")
        if not args.quiet:
            print(to_markdown(told), end="")
    return 1 if told["state"] == "rejected" else 0
