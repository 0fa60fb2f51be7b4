"""`patchq init`: the queue's directories, the exclude entry, a commented configuration."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening, output
from patchq.cli.arguments import Argument
from patchq.gate.api.location import Location, publish, save
from patchq.gate.config import config_file
from patchq.gate.config.schema import Config
from patchq.gate.report import document
from patchq.gate.service.check import doctor

ARGUMENTS = (
    Argument("--target", dest="home", metavar="B", help="the home branch, whose rules count"),
    Argument("--remote", dest="home_remote", metavar="R", help="it is that branch of the remote"),
)
_SCHEMA = "schema.json"  # below the queue: where the sample has editors look for the schema


def run(args: Namespace) -> int:
    location = opening.gate(args).location
    found = location.rules()
    created = make(args, location, found.config)
    queue, path = location.home / found.config.queue.path, location.draft
    answer = {"queue": str(queue), "config": str(path), "home": found.home and str(found.home)}
    return output.emit(args, answer, *created)


def make(args: Namespace, location: Location, config: Config) -> list[str]:
    """Make the queue and the configuration; return what a person is to know of it."""
    queue = opening.gate(args).queue(config)
    path = location.draft
    created = [str(queue.root)]
    if not path.exists():
        save(path, config_file.sample().encode())
        created += [str(path), *location.how_it_counts()]
    # Editors look there for what the sample's first line names, as this patchq has it.
    schema = f"{document.printed(config_file.json_schema(), indent=1)}\n".encode()
    if config_file.content(queue.root / _SCHEMA) != schema:
        publish(queue.root / _SCHEMA, schema)
    location.keep_out_of_status(queue.root)
    lost = doctor.without_sandbox(queue.root)
    return created + ([f"{lost.message}; {lost.cure}"] if lost else [])


def make_missing(args: Namespace, location: Location) -> None:
    """Make the queue where there is none, and tell a person of it."""
    config = location.rules().config
    if not (location.home / config.queue.path).is_dir():
        for line in make(args, location, config):
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
