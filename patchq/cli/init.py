"""`patchq init`: the queue's directories, the exclude entry, a commented configuration."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import output, places
from patchq.config import config_file
from patchq.git.repository import Repository


def run(args: Namespace) -> int:
    repo = Repository.open(args.directory)
    config = places.load_config(args, repo)
    queue = places.open_queue(args, repo, config)
    path = places.config_path(args, repo)
    created = [str(queue.root)]
    if not path.exists():
        path.write_text(config_file.sample(), encoding="utf-8")
        created.append(str(path))
    places.keep_out_of_status(repo, queue.root)
    output.emit(args, {"queue": str(queue.root), "config": str(path)}, *created)
    return 0
