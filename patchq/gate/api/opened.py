"""The repository, its configuration and its queue, opened when they are first asked for."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from patchq.gate.api import location
from patchq.gate.api.location import Location, Options
from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, ObjectDamaged
from patchq.gate.pipeline.context import RepoContext, branches_of
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.queue.engine import UNREAD, StoreQueue, store_queue

if TYPE_CHECKING:  # each command imports what it calls
    from patchq.gate.pipeline.session import Session


class OpenedQueue:
    """A repository with its queue; what it opens is closed with it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._closing = ExitStack()
        self._context: RepoContext | None = None
        self._session: Session | None = None
        self._has_queue = False

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
        return location.find(self.options, self._closing)

    @property
    def root(self) -> Path | None:
        """The queue's directory, once it was opened."""
        return self._context.queue_root if self._context else None

    @property
    def rules(self) -> GateRules | None:
        """The rules of the open context."""
        return self._context.judged_by if self._context else None

    def queue(self, config: Config) -> StoreQueue:
        """Open the queue alone, made if need be."""
        return location.open_queue(self.location, config, self._closing)

    def context(
        self, *, targeted: bool = False, writes: bool = False, looks: bool = False
    ) -> RepoContext:
        """Return the repository, its configuration and its queue.

        Raises `UsageError` where a command needs the default target (`targeted`) and it is missing.
        Only a command that `writes` makes a missing queue; to others it is an empty one.  One that
        `looks` at troubles gets those of the rules as well.
        """
        if self._context is None or (writes and not self._has_queue):
            where = self.location
            found = where.rules_to_look() if looks else where.rules()
            root, target = where.home / found.config.queue.path, location.target_of(found)
            location.setup_log(self.options, found.config)
            branches = branches_of(where.repo, root, found.config, target, found.home)
            self._has_queue = writes or root.is_dir()
            queue = self.queue(found.config) if self._has_queue else StoreQueue(root)
            self._session = None
            self._context = RepoContext(
                where.repo, queue, root, found.config, target, branches=branches, judged_by=found
            )
        if targeted:
            location.check_target(self._context)
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

    def reload(self, file: Path | None = None) -> GateRules:
        """Return the rules as they are now, and log as they have it."""
        rules = self.location.rules()
        self.setup_log(rules.config, file)
        return rules

    def setup_log(self, config: Config, file: Path | None = None) -> None:
        """Send the log to standard error or to the file, as the configuration has it."""
        location.setup_log(self.options, config, file)

    def notice_difference(self, rules: GateRules) -> None:
        """Tell a person who edits the work tree's file that other rules count."""
        found = self.location.difference(rules)
        if found and found[1]:
            self.options.notice("; ".join(found))


def _close(session: Session) -> None:
    """Wait for notified hooks, keep their output, and let go of everything."""
    try:
        with suppress(Fault):  # the work is done, and was reported
            if session.hooks.following:
                from patchq.gate.land import reports

                session.notifier().close()
                reports.keep_hook_outputs(session, sys.maxsize)
    finally:
        session.close()
