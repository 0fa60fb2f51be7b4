"""`patchq init`: the queue's directories, the exclude entry, a commented configuration."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import common
from patchq.config import reading
from patchq.git.repository import Repository

HELP = "make the queue and a commented .patchq.yaml; safe to repeat"


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(args: Namespace) -> int:
    repo = Repository.open(args.directory)
    config = common.load_config(args, repo)
    queue = common.open_queue(args, repo, config)
    path = common.config_path(args, repo)
    made = [str(queue.root)]
    if not path.exists():
        path.write_text(reading.sample(), encoding="utf-8")
        made.append(str(path))
    common.keep_out_of_status(repo, queue.root)
    common.emit(args, {"queue": str(queue.root), "config": str(path)}, lambda: "\n".join(made))
    return 0
