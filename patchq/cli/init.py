"""`patchq init`: the queue's directories, the exclude entry, a commented configuration."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq import config as configuration
from patchq.cli import common
from patchq.repo import Repository

HELP = "make the queue and a commented .patchq.yaml; safe to repeat"


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(args: Namespace) -> int:
    repo = Repository.open(args.directory)
    config = common.load_config(args, repo)
    queue = common.open_queue(repo, config)
    path = common.config_path(args, repo)
    made = [str(queue.root)]
    if not path.exists():
        path.write_text(configuration.sample(), encoding="utf-8")
        made.append(str(path))
    workdir = common.main_workdir(repo)
    if workdir and queue.root.is_relative_to(workdir):
        _exclude(repo, f"/{queue.root.relative_to(workdir).as_posix()}/")
    common.emit(args, {"queue": str(queue.root), "config": str(path)}, lambda: "\n".join(made))
    return 0


def _exclude(repo: Repository, pattern: str) -> None:
    """Keep the queue out of `git status`, without touching a file of the repository."""
    path = repo.commondir / "info" / "exclude"
    known = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
    if pattern in known.splitlines():
        return
    path.parent.mkdir(exist_ok=True)
    start = "" if not known or known.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{start}{pattern}\n")
