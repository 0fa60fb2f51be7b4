"""A repository, its rules and its queue, opened on first use."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from fnmatch import fnmatchcase
from functools import cached_property
from grp import getgrnam
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.config import config_file
from patchq.gate.config.config_file import FILE, OPERATORS_FILE
from patchq.gate.config.schema import Config, Queue
from patchq.gate.errors import Fault, ObjectDamaged, RepositoryFault, UsageError
from patchq.gate.git import files, records
from patchq.gate.git.branches.home import Home, HomeGone, proposed, record, recorded, refuse
from patchq.gate.git.checkout import missing, registered
from patchq.gate.git.command import Git
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import context as rules
from patchq.gate.pipeline.context import GateRules, RepoContext, branches_of
from patchq.gate.queue import spool
from patchq.gate.queue.engine import StoreQueue, store_queue
from patchq.gate.queue.store import UNREAD
from patchq.gate.report import logs
from patchq.gate.service import cluster, stats

if TYPE_CHECKING:  # each command imports what it calls
    from patchq.gate.pipeline.session import Session

_PASSWORD = re.compile(r"://[^:/?#]*:([^@]+)@|password=(?:'((?:[^'\\]|\\.)+)'|([^\s&']+))")

_SCHEMA = "schema.json"  # below the queue: where the sample has editors look for the schema


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
    """A repository, and the places of its queue and of its rules."""

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
        """Return the rules, or the defaults with the fault of the home branch.

        Raises `UsageError` where an operator's file has the rules and cannot be used.
        """
        try:
            return self.rules()
        except UsageError as error:
            if rules.of_operator(self.repo, self.options.config):
                raise
            known = isinstance(error, HomeGone | config_file.ConfigError)
            return GateRules(fault=error, home=recorded(self.repo.commondir) if known else None)

    def tracks(self, path: Path) -> bool:
        """True if git has the file in the index of its work tree."""
        git = Git(directory=path.parent)
        return path.parent.is_dir() and bool(git.run("ls-files", "--", path.name).out)

    def worktrees(self) -> list[Path]:
        """Return the work trees that are there, the main one first."""
        return [one.workdir for one in registered(self.repo) if not missing(one)]

    def _find_home(self, own: GateRules | None) -> Home | None:
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
        """Return the reason that the configured path cannot hold the queue."""
        root = (self.home / config.queue.path).resolve()
        if any(path.resolve().is_relative_to(root) for path in (self.home, self.repo.commondir)):
            return f"got `{config.queue.path}`, which holds the repository"
        if root.is_file():
            return f"got `{config.queue.path}`, which is a file"
        names = {name for name in os.listdir(root) if name[0] != "."} if root.is_dir() else set()
        if names - {"lost+found"} and not names.intersection(spool.PUBLIC):
            return f"got `{config.queue.path}`, which holds other files"
        return None

    def keep_out_of_status(self, queue: Path) -> None:
        """Have `git status` pass over the queue, without touching a file of the repository."""
        if self.workdir is not None and queue.is_relative_to(self.workdir):
            queue = queue.relative_to(self.workdir)
            files.exclude(self.repo.commondir, [f"/{queue.as_posix()}/"])

    def keep_out_of_commits(self, paths: Collection[str], *, remove: bool) -> None:
        """Have git ignore files of the work tree in this repository, or no more."""
        patterns = [f"/{path}" for path in paths]
        files.exclude(self.repo.commondir, patterns, remove=remove)


def write_file(path: Path, data: bytes | None, *tops: Path) -> None:
    """Replace a file that people edit; with None, remove it.

    The folders below `tops` that this leaves empty go with it.
    """
    if data is None:
        files.take_away(path, *tops)
    else:
        files.save(path, data)


def stamp(path: Path) -> tuple[int, int, int] | None:
    """Return another value when a file changes; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _group(config: Config) -> int | None:
    try:
        return getgrnam(config.queue.group).gr_gid if config.queue.group else None
    except KeyError:
        return None


class OpenedQueue:
    """A repository with its queue; what it opens is closed with it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._closing = ExitStack()
        self._context: RepoContext | None = None
        self._session: Session | None = None
        self._has_queue = False
        self._files: object = None

    @classmethod
    def open(cls, directory: Path | str = ".", config: Path | None = None) -> Self:
        """Return the gate of the repository that holds the directory."""
        return cls(Options(Path(directory), config))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the queue and the repository, once notified hooks have ended."""
        self._context = self._session = None
        self.__dict__.pop("location", None)
        self._closing.close()

    @cached_property
    def location(self) -> Location:
        """The repository; raises `UsageError` where there is none."""
        repo = Repository.open(self.options.directory)
        files.share(repo.setting("core.sharedRepository"))
        linked = repo.gitdir != repo.commondir
        workdir = Repository.open(repo.commondir).workdir if linked else repo.workdir
        return Location(repo, workdir, workdir or repo.commondir, self.options)

    @property
    def root(self) -> Path | None:
        """The queue's directory, once it was opened."""
        return self._context.queue_root if self._context else None

    def queue(self, config: Config) -> StoreQueue:
        """Open the queue alone, made if need be."""
        repo, root = self.location.repo, self.location.home / config.queue.path
        if not (root / spool.PUBLIC[0]).is_dir():
            self.location.keep_out_of_status(root)
            files.make_directory(root)
        sharers = repo.commondir.stat().st_gid if files.is_on() else None
        if not config.queue.network_disk:
            spool.refuse_network(root)
        spool.create(root, _group(config), sharers)
        prefixes = (*records.BY_ID, *records.fetched(config.landing.remote))
        queue = StoreQueue(
            root,
            response_bytes=config.limits.response_bytes,
            settle_seconds=config.queue.settle_seconds,
            counted=stats.counted,
            # In a cluster the database gives the ids, and a worker may have records of its own.
            is_known=lambda id: (
                not config.has_cluster and repo.has_ref(*(prefix + id for prefix in prefixes))
            ),
        )
        self._closing.callback(queue.close)
        queue.rebuild()
        return queue

    def context(
        self, *, targeted: bool = False, writes: bool = False, looks: bool = False
    ) -> RepoContext:
        """Return the repository, its configuration and its queue.

        Raises `UsageError` where a command needs the default target (`targeted`) and it is missing.
        Only a command that `writes` makes a missing queue; to others it is an empty one.  One that
        `looks` at troubles gets those of the rules as well.
        """
        if self._context is None or (writes and not self._has_queue):
            where, self._files = self.location, self._stamps()
            found = where.rules_to_look() if looks else where.rules()
            config, target = found.config, found.target
            root = where.home / config.queue.path
            self.setup_log(config)
            branches = branches_of(where.repo, root, config, target, found.home)
            self._has_queue = writes or root.is_dir()
            queue = self.queue(config) if self._has_queue else StoreQueue(root)
            self._session = None
            self._context = RepoContext(
                where.repo, queue, root, config, target, branches=branches, judged_by=found
            )
        if targeted:
            _check_target(self._context)
        return self._context

    def session(self, *, targeted: bool = True, writes: bool = True) -> Session:
        """Return the context with all that deciding takes."""
        from patchq.gate.pipeline.session import compose

        context = self.context(targeted=targeted, writes=writes)
        if self._session is None:
            self._session = compose(context)
            self._closing.callback(_close, self._session)
        if writes and store_queue(context.queue).store.recall(UNREAD):
            from patchq.gate.service.check import fsck  # only a new store needs it

            with suppress(ObjectDamaged):  # reported once a change needs the object
                fsck.enter_history(self._session)
        return self._session

    def is_current(self) -> bool:
        """Return True if the open queue still has its rules and its place.

        Raises `RepositoryFault` if the repository is gone.
        """
        context, location = self._context, self.location
        if not (location.repo.commondir / "HEAD").exists():
            raise RepositoryFault(
                f"there is no repository in {location.repo.commondir} any more",
                "put it back, or start the server again where the repository is",
            )
        if context is None or self._files != self._stamps():
            return False
        if context.queue_root.is_dir() != self._has_queue:
            return False
        return rules.renewed(location.repo, context.judged_by) is context.judged_by

    def _stamps(self) -> object:
        common = self.location.repo.commondir
        return stamp(self.options.config or common / OPERATORS_FILE), stamp(common / "config")

    def reload(self) -> GateRules:
        """Return the rules as they are now, and log as they have it."""
        found = self.location.rules()
        self.setup_log(found.config)
        return found

    def setup_log(self, config: Config) -> None:
        """Have the log written as configured."""
        key = os.environ.get(config.llm.api_key_env or "", "")
        named = _PASSWORD.search(cluster.database(config))
        password = next(filter(None, named.groups()), "") if named else ""
        level = self.options.log_level or config.log.level
        logs.setup(level, config.log.format, [key, password, unquote(password)])

    def make(self, config: Config) -> list[str]:
        """Make the queue, and a sample of the configuration; return what a person is to know."""
        from patchq.gate.report import document
        from patchq.gate.service.check import doctor

        path, queue = self.location.draft, self.queue(config)
        created = [str(queue.root)]
        if not path.exists():
            write_file(path, config_file.sample().encode())
            created += [str(path), *self.location.how_it_counts()]
        # Editors look there for what the sample's first line names, as this patchq has it.
        schema = f"{document.printed(config_file.json_schema(), indent=1)}\n".encode()
        place = queue.root / _SCHEMA
        if config_file.content(place) != schema:
            files.replace(place, schema, via=place.with_suffix(".tmp"))
        self.location.keep_out_of_status(queue.root)
        lost = doctor.without_sandbox(queue.root)
        return created + ([f"{lost.message}; {lost.cure}"] if lost else [])

    def notice_difference(self, found: GateRules) -> None:
        """Tell a person who edits the work tree's file that other rules count."""
        other = rules.difference(self.location.repo, found)
        if other and other[1]:
            self.options.notice("; ".join(other))


def _check_target(context: RepoContext) -> None:
    home, target, branches = context.judged_by.home, context.target, context.branches
    with suppress(ObjectDamaged):  # a branch whose commit cannot be read is there
        if branches.tip(target) is None and branches.remote:
            branches.refresh()
        if branches.tip(target) is None:
            if home and target == home.branch and branches.tips(""):
                raise HomeGone(home)
            raise UsageError(
                f"the target branch {target!r} does not exist",
                "make a first commit there, or set another `target`",
            )
    if records.is_branch(target):
        raise UsageError(
            f"{target!r} is a branch that waits for review, so changes cannot be for it",
            "set another `target` in the configuration",
        )


def _close(session: Session) -> None:
    """Wait for notified hooks, and let go of everything."""
    try:
        with suppress(Fault):  # the work is done, and was reported
            if session.hooks.following:
                session.notifier().close()
    finally:
        session.close()
