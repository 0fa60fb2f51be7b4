"""Where the repository, its configuration and its queue are, and opening them."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from contextlib import suppress
from grp import getgrnam
from pathlib import Path
from urllib.parse import unquote

from patchq.core.model.errors import DiskFault, ObjectDamaged, UsageError
from patchq.core.model.frozen import frozen
from patchq.gate.config import config_file
from patchq.gate.config.schema import Config
from patchq.gate.git import records, sharing
from patchq.gate.git.branches import Branches, backup
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.ground import Ground, branches_of
from patchq.gate.queue import layout
from patchq.gate.queue.directory import DirectoryQueue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.queue.memory import MemoryQueue
from patchq.gate.report import logs

DATABASE = "PATCHQ_DATABASE"
_PASSWORD = re.compile(r"://[^:/?#]*:([^@]+)@|password=(?:'((?:[^'\\]|\\.)+)'|([^\s&']+))")


@frozen
class Site:
    """A repository, with the places of its configuration and its queue."""

    repo: Repository
    workdir: Path | None
    """The main work tree, whichever linked one the repository was opened from; None when bare."""
    home: Path
    """Where the queue's default place begins: the main work tree's root, or the git directory of a
    bare repository."""
    config_path: Path
    named: bool
    """Whether the command line says where the configuration is, which must be there then."""

    def read_config(self) -> Config:
        """The configuration; raises `ConfigError` for one that cannot be read."""
        return config_file.load(self.config_path, required=self.named)

    def load_config(self) -> Config:
        """The configuration; raises `ConfigError` for one that cannot be used."""
        config = self.read_config()
        if "path" in config.queue.given and (why := self._not_a_queue(config)):
            where = config_file.place(self.config_path, "queue", "path")
            raise config_file.ConfigError([f"{where}: expected a directory of its own, {why}"])
        if config.queue.group and not _group(config):
            where = config_file.place(self.config_path, "queue", "group")
            named = config.queue.group
            problem = f"{where}: expected a group of this machine, got `{named}`"
            raise config_file.ConfigError([problem])
        return clustered(config)

    def _not_a_queue(self, config: Config) -> str | None:
        """Why the queue cannot be where the configuration has it, though a directory is there."""
        root = (self.home / config.queue.path).resolve()
        if any(path.resolve().is_relative_to(root) for path in (self.home, self.repo.commondir)):
            return f"got `{config.queue.path}`, which holds the repository"
        if root.is_file():
            return f"got `{config.queue.path}`, which is a file"
        names = {name for name in os.listdir(root) if name[0] != "."} if root.is_dir() else set()
        if names - {"lost+found"} and not names.intersection(layout.PUBLIC):
            return f"got `{config.queue.path}`, which holds other files"
        return None

    def keep_out_of_status(self, queue: Path) -> None:
        """Have `git status` pass over the queue, without touching a file of the repository."""
        if self.workdir is not None and queue.is_relative_to(self.workdir):
            queue = queue.relative_to(self.workdir)
            backup.exclude(self.repo.commondir, [f"/{queue.as_posix()}/"])


def clustered(config: Config) -> Config:
    """The configuration, where there is a cluster with what follows from that: batches land on its
    remote."""
    if "cluster" not in config.given:
        return config
    shared = config.cluster
    landing = config.landing.but(
        remote=shared.remote, push_timeout_seconds=shared.push_timeout_seconds
    )
    return config.but(landing=landing)


def _group(config: Config) -> int | None:
    """The number of the group that may read reports, where one is named and known."""
    try:
        return getgrnam(config.queue.group).gr_gid if config.queue.group else None
    except KeyError:
        return None


def find(args: Namespace) -> Site:
    """The repository that the command is called in, or for; `UsageError` if there is none."""
    repo = Repository.open(args.directory)
    args.opened.callback(sharing.unshare)
    sharing.share(repo.setting("core.sharedRepository"))
    linked = not repo.bare and repo.gitdir != repo.commondir
    workdir = Repository.open(repo.commondir).workdir if linked else repo.workdir
    home = workdir or repo.commondir
    path = args.config or home / (".patchq.yaml" if workdir else "patchq.yaml")
    return Site(repo, workdir, home, Path(path), args.config is not None)


def open_queue(args: Namespace, site: Site, config: Config) -> DirectoryQueue:
    """The queue, made if need be; the end of the command closes it."""
    root = site.home / config.queue.path
    if not root.is_dir():
        site.keep_out_of_status(root)
    sharers = site.repo.commondir.stat().st_gid if sharing.is_on() else None
    layout.create(root, _group(config), sharers)
    prefixes = (*records.BY_ID, *records.fetched(config.landing.remote))
    queue = DirectoryQueue(
        root,
        response_bytes=config.limits.response_bytes,
        settle_seconds=config.queue.settle_seconds,
        # In a cluster the database gives the ids, and a worker may have records here of its own.
        is_known=lambda id: (
            "cluster" not in config.given
            and site.repo.has_ref(*(prefix + id for prefix in prefixes))
        ),
    )
    args.opened.callback(queue.close)
    return queue


def open_ground(args: Namespace, *, targeted: bool = False, writes: bool = False) -> Ground:
    """The repository, its configuration and its queue.

    Raises `UsageError` where the default target cannot be told, if the command needs it
    (`targeted`).  A command that only looks (unless `writes`) does not even make the queue: a
    missing one is an empty one.
    """
    site = find(args)
    config = site.load_config()
    setup_log(args, config)
    repo, root = site.repo, site.home / config.queue.path
    target = default_target(repo, config, root)
    branches = branches_of(repo, root, config, target or "")
    target = _checked(branches, target) if targeted else target or ""
    looks = not writes and not root.is_dir()
    queue = MemoryQueue() if looks else open_queue(args, site, config)
    return Ground(repo, queue, root, config, target, branches=branches)


def default_target(repo: Repository, config: Config, queue: Path) -> str | None:
    """The configured branch, else the daemon's while one runs, else the one that the main work tree
    has checked out: the queue is that of the whole repository, whichever linked work tree a command
    is called in."""
    daemon = None
    if not config.target:
        with suppress(DiskFault):  # `doctor` says so, and `fsck` mends it
            daemon = lock_owner(queue)
    return config.target or (daemon and daemon.target) or repo.head_branch(repo.commondir)


def _checked(branches: Branches, target: str | None) -> str:
    """The same branch; raises `UsageError` where batches cannot be for it."""
    if target is None:
        raise UsageError(
            "HEAD is on no branch that has a commit, so there is no default target",
            "check out a branch, or set `target` in .patchq.yaml",
        )
    if _is_missing(branches, target):
        raise UsageError(
            f"the target branch {target!r} does not exist", "create it, or set another `target`"
        )
    if records.is_branch(target):
        raise UsageError(
            f"{target!r} is a branch that waits for review, so batches cannot be for it",
            "check out another branch, or set `target` in .patchq.yaml",
        )
    return target


def _is_missing(branches: Branches, target: str) -> bool:
    """Whether there is no such branch; one whose commit cannot be read is there, and holds what is
    for it."""
    try:
        if branches.tip(target) is None and branches.remote:
            branches.refresh()
        return branches.tip(target) is None
    except ObjectDamaged:
        return False


def setup_log(args: Namespace, config: Config, file: Path | None = None) -> None:
    """Send the log to standard error or to the file, in the configured form."""
    level = "debug" if args.verbose else "error" if args.quiet else config.log.level
    key = os.environ.get(config.llm.api_key_env or "", "")
    found = _PASSWORD.search(database(config))
    password = next(filter(None, found.groups()), "") if found else ""
    logs.setup(level, config.log.format, file, [key, password, unquote(password)])


def database(config: Config) -> str:
    """The connection string of the cluster's database; empty where none is named."""
    return config.cluster.database or os.environ.get(DATABASE, "")
