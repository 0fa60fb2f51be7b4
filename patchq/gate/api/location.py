"""A repository, the rules that count in it, and its queue."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from grp import getgrnam
from pathlib import Path
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.config import config_file
from patchq.gate.config.config_file import FILE, OPERATORS_FILE
from patchq.gate.config.schema import Config, Queue
from patchq.gate.errors import ObjectDamaged, UsageError
from patchq.gate.git import files, records
from patchq.gate.git.branches import Branches, way_back
from patchq.gate.git.branches.home import Home, HomeGone, proposed, record, recorded, refuse
from patchq.gate.git.checkout import missing, registered
from patchq.gate.git.command import Git
from patchq.gate.git.files import save as save
from patchq.gate.git.files import take_away as take_away
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import rules
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.queue import layout
from patchq.gate.queue.engine import UNREAD, Key, StoreQueue
from patchq.gate.report import logs
from patchq.gate.report.schema import Report
from patchq.gate.service.cluster import database as database

_PASSWORD = re.compile(r"://[^:/?#]*:([^@]+)@|password=(?:'((?:[^'\\]|\\.)+)'|([^\s&']+))")


class Options(Struct, frozen=True):
    """The repository that is meant, and the options on it from a command line."""

    directory: Path = Path()
    config: Path | None = None
    """A configuration in place of the repository's."""
    home: str | None = None
    home_remote: str | None = None
    """The home branch, and its remote, from now on."""
    log_level: str | None = None
    notice: Callable[[str], None] = lambda text: None
    """Tells a person, beside any answer."""

    @property
    def command(self) -> list[str]:
        """The words that start patchq again, for the same repository and configuration."""
        words = [sys.executable, "-m", "patchq", "-C", str(self.directory.resolve())]
        return words + (["--config", str(self.config.resolve())] if self.config else [])


class Location(Struct, frozen=True):
    """A repository, with the places of its queue and of the rules that count in it."""

    repo: Repository
    workdir: Path | None
    """The main work tree, whichever linked one the repository was opened from; None when bare."""
    home: Path
    """The queue's default place begins here: the main work tree, or a bare repository."""
    options: Options

    @property
    def draft(self) -> Path:
        """The configuration file that people edit here: it need not be the one that counts."""
        own = self.repo.commondir / OPERATORS_FILE
        return self.options.config or (
            own if self.workdir is None or own.exists() else self.workdir / FILE
        )

    def how_it_counts(self) -> list[str]:
        """Return what is left to do with an edited draft, as lines for people."""
        home = recorded(self.repo.commondir)
        return [f"commit it to {home}: it counts then"] if home and self.draft.name == FILE else []

    def rules(self) -> GateRules:
        """Return the rules that count; raises `UsageError` where they cannot be known, or used."""
        own = rules.of_operator(self.repo, self.options.config)
        home = self._find_home(own)
        found = rules.checked(replace(own, home=home) if own else rules.of_home(self.repo, home))
        config = found.config
        if config.queue.path != Queue().path and (why := self._not_a_queue(config)):
            where = found.place("queue", "path")
            raise config_file.ConfigError([f"{where}: expected a directory of its own, {why}"])
        if config.queue.group and not _group(config):
            where, named = found.place("queue", "group"), config.queue.group
            problem = f"{where}: expected a group of this machine, got `{named}`"
            raise config_file.ConfigError([problem])
        return found

    def rules_to_look(self) -> GateRules:
        """Return the rules that count, or the defaults with the trouble of the home branch."""
        try:
            return self.rules()
        except UsageError as error:
            if rules.of_operator(self.repo, self.options.config):
                raise
            known = isinstance(error, HomeGone | config_file.ConfigError)
            return GateRules(fault=error, home=recorded(self.repo.commondir) if known else None)

    def difference(self, found: GateRules) -> tuple[str, str] | None:
        """Return how the work tree's configuration differs from what counts, and what to do."""
        return rules.difference(self.repo, found)

    def tracks(self, path: Path) -> bool:
        """True if git has the file in the index of its work tree."""
        git = Git(directory=path.parent)
        return path.parent.is_dir() and bool(git.run("ls-files", "--", path.name).out)

    def worktrees(self) -> list[Path]:
        """Return the work trees that are there, the main one first."""
        return [one.workdir for one in registered(self.repo) if not missing(one)]

    def _find_home(self, own: GateRules | None) -> Home | None:
        """Return the home branch, recorded if it was not; None where none is needed."""
        named, remote = self.options.home, self.options.home_remote
        known, checked_out = recorded(self.repo.commondir), False
        if named is None and remote is not None and known:
            raise UsageError(f"the home branch is {known}", "say --target, too, to change that")
        if named is None and (known or (remote is None and own and own.config.target)):
            return known
        if named is None:
            home, checked_out = proposed(self.repo)
        else:
            home = Home(named, known.remote if known else None)
        if remote is not None:
            home = replace(home, remote=remote or None)
        if home == known:
            return home
        patterns = (own or rules.of_home(self.repo, home)).config.branches if checked_out else ()
        if any(fnmatchcase(home.branch, pattern) for pattern in patterns):
            raise refuse(home)
        record(self.repo, home)
        before = f", no longer {known}" if known else ""
        self.options.notice(f"{home} is the home branch from now on{before}: its rules count here")
        return home

    def _not_a_queue(self, config: Config) -> str | None:
        """Return why the queue cannot be at its configured place, though a directory is there."""
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
            way_back.exclude(self.repo.commondir, [f"/{queue.as_posix()}/"])


def _group(config: Config) -> int | None:
    """The number of the group that may read reports, where one is named and known."""
    try:
        return getgrnam(config.queue.group).gr_gid if config.queue.group else None
    except KeyError:
        return None


def find(options: Options, closing: ExitStack) -> Location:
    """Return the repository that the directory is in; `UsageError` if there is none."""
    repo = Repository.open(options.directory)
    closing.callback(files.unshare)
    files.share(repo.setting("core.sharedRepository"))
    linked = not repo.bare and repo.gitdir != repo.commondir
    workdir = Repository.open(repo.commondir).workdir if linked else repo.workdir
    return Location(repo, workdir, workdir or repo.commondir, options)


def _counted(report: Report) -> Mapping[Key, float]:
    from patchq.gate.service import stats  # who gives no verdict counts nothing

    return stats.counted(report)


def publish(path: Path, data: bytes) -> None:
    """Replace a file for all who may use the queue, as a whole."""
    files.replace(path, data, via=path.with_suffix(".tmp"))


def open_queue(location: Location, config: Config, closing: ExitStack) -> StoreQueue:
    """Open the queue, made if need be."""
    root = location.home / config.queue.path
    if not (root / layout.PUBLIC[0]).is_dir():
        location.keep_out_of_status(root)
        files.make_directory(root)
    sharers = location.repo.commondir.stat().st_gid if files.is_on() else None
    if not config.queue.network_disk:
        layout.refuse_network(root)
    layout.create(root, _group(config), sharers)
    prefixes = (*records.BY_ID, *records.fetched(config.landing.remote))
    queue = StoreQueue(
        root,
        response_bytes=config.limits.response_bytes,
        settle_seconds=config.queue.settle_seconds,
        counted=_counted,
        # In a cluster the database gives the ids, and a worker may have records here of its own.
        is_known=lambda id: (
            not config.has_cluster and location.repo.has_ref(*(prefix + id for prefix in prefixes))
        ),
    )
    closing.callback(queue.close)
    if queue.store.fresh:
        queue.store.remember(UNREAD, "history")
    if queue.is_lost():
        queue.rebuild()
    return queue


def target_of(rules: GateRules) -> str:
    """Return the branch of what names none; empty where the home branch is not known."""
    return rules.config.target or (rules.home.branch if rules.home else "")


def check_target(context: RepoContext) -> None:
    """Raise `UsageError` where changes cannot be for the default target."""
    home, target = context.judged_by.home, context.target
    if _is_missing(context.branches, target):
        if not context.branches.tips(""):
            raise UsageError(f"{target!r} has no commit yet", "make a first commit")
        if home and target == home.branch:
            raise HomeGone(home, context.repo)
        raise UsageError(
            f"the target branch {target!r} does not exist", "create it, or set another `target`"
        )
    if records.is_branch(target):
        raise UsageError(
            f"{target!r} is a branch that waits for review, so changes cannot be for it",
            "set another `target` in the configuration",
        )


def _is_missing(branches: Branches, target: str) -> bool:
    """True if there is no such branch; one whose commit cannot be read is there."""
    try:
        if branches.tip(target) is None and branches.remote:
            branches.refresh()
        return branches.tip(target) is None
    except ObjectDamaged:
        return False


def setup_log(options: Options, config: Config, file: Path | None = None) -> None:
    """Send the log to standard error or to the file, in the configured form."""
    key = os.environ.get(config.llm.api_key_env or "", "")
    found = _PASSWORD.search(database(config))
    password = next(filter(None, found.groups()), "") if found else ""
    secrets = [key, password, unquote(password)]
    logs.setup(options.log_level or config.log.level, config.log.format, file, secrets)
