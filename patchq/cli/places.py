"""Where the repository, its configuration and its queue are, and opening them."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from patchq.config import config_file
from patchq.config.schema import Config
from patchq.git import backup, records
from patchq.git.repository import Repository
from patchq.model.errors import UsageError
from patchq.pipeline.world import World, compose
from patchq.queue import directory
from patchq.queue.directory import DirectoryQueue
from patchq.queue.memory import MemoryQueue
from patchq.report import logs


def root_of(repo: Repository) -> Path:
    """Where the queue's default place and the configuration are: the work tree's root, or the git
    directory of a bare repository."""
    return main_workdir(repo) or repo.commondir


def main_workdir(repo: Repository) -> Path | None:
    """The main work tree, whichever linked one the repository was opened from; None when bare."""
    if repo.bare or repo.gitdir == repo.commondir:
        return repo.workdir
    return Repository.open(repo.commondir).workdir


def config_path(args: Namespace, repo: Repository) -> Path:
    if args.config is not None:
        return Path(args.config)
    return root_of(repo) / (".patchq.yaml" if main_workdir(repo) else "patchq.yaml")


def load_config(args: Namespace, repo: Repository) -> Config:
    """The configuration; raises `ConfigError` for one that cannot be used."""
    path = config_path(args, repo)
    config = config_file.load(path, required=args.config is not None)
    config_file.check_kept(path, config)
    if "path" in config.queue.model_fields_set and (why := _not_a_queue(repo, config)):
        where = config_file.place(path, "queue", "path")
        raise config_file.ConfigError([f"{where}: expected a directory of its own, {why}"])
    return config


def _not_a_queue(repo: Repository, config: Config) -> str | None:
    """Why the queue cannot be where the configuration has it, though a directory is there."""
    root = (root_of(repo) / config.queue.path).resolve()
    if any(place.resolve().is_relative_to(root) for place in (root_of(repo), repo.commondir)):
        return f"got `{config.queue.path}`, which holds the repository"
    if root.is_file():
        return f"got `{config.queue.path}`, which is a file"
    there = {name for name in os.listdir(root) if name[0] != "."} if root.is_dir() else set()
    if there - {"lost+found"} and not there.intersection(directory.PUBLIC):
        return f"got `{config.queue.path}`, which holds other files"
    return None


def open_queue(args: Namespace, repo: Repository, config: Config) -> DirectoryQueue:
    """The queue, made if need be; the end of the command closes it."""

    def is_known(id: str) -> bool:
        return any(repo.ref_target(prefix + id) for prefix in records.BY_ID)

    root = root_of(repo) / config.queue.path
    if not root.is_dir():
        keep_out_of_status(repo, root)
    directory.create(root)
    queue = DirectoryQueue(
        root,
        response_bytes=config.limits.response_bytes,
        settle_seconds=config.queue.settle_seconds,
        is_known=is_known,
    )
    args.opened.callback(queue.close)
    return queue


def keep_out_of_status(repo: Repository, queue: Path) -> None:
    """Have `git status` pass over the queue, without touching a file of the repository."""
    workdir = main_workdir(repo)
    if workdir is None or not queue.is_relative_to(workdir):
        return
    backup.exclude(repo.commondir, [f"/{queue.relative_to(workdir).as_posix()}/"])


def open_world(args: Namespace, *, targeted: bool = True, writes: bool = True) -> World:
    """The repository, its configuration and its queue.

    Raises `UsageError` where the default target cannot be told, unless the command only speaks of
    batches that have theirs (`targeted=False`).  A command that only looks (`writes=False`) does
    not even make the queue: a missing one is an empty one.
    """
    repo = Repository.open(args.directory)
    config = load_config(args, repo)
    setup_log(args, config)
    target = _target(repo, config) if targeted else config.target or repo.head_branch() or ""
    root = root_of(repo) / config.queue.path
    looks = not writes and not root.is_dir()
    queue = MemoryQueue() if looks else open_queue(args, repo, config)
    world = compose(repo, queue, root, config, target)
    args.opened.callback(world.close)
    return world


def _target(repo: Repository, config: Config) -> str:
    target = config.target or repo.head_branch()
    if target is None:
        raise UsageError(
            "HEAD is on no branch that has a commit, so there is no default target",
            "check out a branch, or set `target` in .patchq.yaml",
        )
    if repo.branch_tip(target) is None:
        raise UsageError(
            f"the target branch {target!r} does not exist", "create it, or set another `target`"
        )
    if records.is_branch(target):
        raise UsageError(
            f"{target!r} is a branch that waits for review, so batches cannot be for it",
            "check out another branch, or set `target` in .patchq.yaml",
        )
    return target


def setup_log(args: Namespace, config: Config, file: Path | None = None) -> None:
    """Send the log to standard error or to the file, in the configured form."""
    level = "debug" if args.verbose else "error" if args.quiet else config.log.level
    key = os.environ.get(config.llm.api_key_env or "", "")
    logs.setup(level, config.log.format, file, [key])
