"""`patchq init`: the queue's directories, the exclude entry, a commented configuration."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening, output
from patchq.cli.arguments import Argument
from patchq.gate.api.location import Location
from patchq.gate.config import config_file

ARGUMENTS = (
    Argument("--target", dest="home", metavar="B", help="the home branch, whose rules count"),
    Argument("--remote", dest="home_remote", metavar="R", help="it is that branch of the remote"),
)


def run(args: Namespace) -> int:
    location = opening.gate(args).location
    found = location.rules()
    queue, path = location.home / found.config.queue.path, location.draft
    answer = {"queue": str(queue), "config": str(path), "home": found.home and str(found.home)}
    return output.emit(args, answer, *opening.gate(args).make(found.config))


def make_missing(args: Namespace, location: Location) -> None:
    """Make the queue where there is none, and tell a person of it."""
    config = location.rules().config
    if not (location.home / config.queue.path).is_dir():
        for line in opening.gate(args).make(config):
            output.notice(args, line)


def take_back_draft(location: Location) -> list[str]:
    """Remove the sample configuration if it is neither changed nor tracked; return its name."""
    path = location.draft
    inside = location.workdir is not None and path.is_relative_to(location.workdir)
    if not inside or not path.is_file() or location.tracks(path):
        return []
    if path.read_bytes() != config_file.sample().encode():
        return []
    path.unlink()
    return [path.name]
