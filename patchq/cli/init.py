"""`patchq init`: the queue's directories, the exclude entry, a commented configuration."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import output, places
from patchq.config import config_file
from patchq.git import files, sharing


def run(args: Namespace) -> int:
    site = places.find(args)
    queue = places.open_queue(args, site, site.load_config())
    path = site.config_path
    created = [str(queue.root)]
    if not path.exists():
        # It says what runs, so no group may write it that umask keeps out.
        mode = 0o666 & ~max(sharing.childrens_umask(), 0)
        files.write(path, config_file.sample().encode(), mode=mode)
        created.append(str(path))
    site.keep_out_of_status(queue.root)
    return output.emit(args, {"queue": str(queue.root), "config": str(path)}, *created)
