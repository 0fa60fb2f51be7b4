"""Queries and commands on a queue, for the command line, page and MCP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from msgspec.structs import replace

from patchq.gate.api import rows, submitting, waiting
from patchq.gate.api.location import OpenedQueue
from patchq.gate.api.rows import ALL, ChangeRow, Filter, Pending, Rows
from patchq.gate.api.submitting import Change, Commits, Keys, Ticket
from patchq.gate.errors import Fault, UsageError
from patchq.gate.git import records
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.context import GateRules, difference
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.events import Events
from patchq.gate.queue.lock import Owner, lock_owner
from patchq.gate.queue.shelf import Shelf
from patchq.gate.queue.store import LOCKS
from patchq.gate.review import pull_requests
from patchq.gate.service import stats

if TYPE_CHECKING:  # each command imports what it calls
    from patchq.gate.api.deciding import Ask
    from patchq.gate.api.status import Status
    from patchq.gate.land.worker import Tell
    from patchq.gate.report.schema import CommentEntry, Report
    from patchq.gate.review.accept import Watch
    from patchq.gate.review.decide import Decided
    from patchq.gate.review.errands import Errand
    from patchq.gate.service.check import Finding
    from patchq.gate.service.daemon import Daemon
    from patchq.llm.prompts import Task
    from patchq.llm.request import Request

MOST = 50  # rows of a list, unless a number is given


class Gate(OpenedQueue):
    """All queries and commands of a repository's queue."""

    # ---------------------------------------------------------------- queries

    def status(self, where: Filter = ALL, limit: int | None = MOST) -> Status:
        """Return the daemon, the inbox, troubles, and at most `limit` changes of each block."""
        from patchq.gate.api import status

        return status.look(self.context(looks=True), where, limit)

    def batches(self, where: Filter = ALL, limit: int | None = MOST, skip: int = 0) -> Rows:
        """Return changes that have a verdict, the newest first unless `where` has an order."""
        context = self.context()
        found = rows.newest_first(context, limit and limit + skip)
        return rows.collect(context, found, where, limit, skip)

    def find(self, id: str) -> ChangeRow | Pending:
        """Return a change as git shows it now, or its response without a verdict."""
        context = self.context()
        if pending := store_queue(context.queue).pending(id):
            return pending
        report, note = rows.examined(context, id)
        shown = pull_requests.shown(context).get(report.id)
        row = ChangeRow(report=report, note=note, request=shown)
        row = rows.with_sizes(context, row)
        waits = report.state in ("proposed", "held")
        return rows.with_risk(context, row) if waits else row

    def report(self, id: str) -> Report:
        """Return the report of a change as git shows it now."""
        return rows.examined(self.context(), id)[0]

    def checks(self) -> list[Finding]:
        """Return what keeps patchq from working here, or its promises from holding."""
        from patchq.gate.service.check import Finding, doctor

        try:
            location = self.location
        except Fault as fault:
            broken = Finding("repository.format", "fatal", fault.message, fault.hint)
            return [broken, *doctor.of_any_machine()]
        rules = GateRules()
        try:
            rules = location.rules()
        except UsageError as error:
            lines = error.message.splitlines()
            found = [Finding("config", "fatal", line, error.hint) for line in lines]
        else:
            found = [Finding("config", "ok", rules.name)]
            if other := difference(location.repo, rules):
                found.append(Finding("config.worktree", "weaker" if other[1] else "ok", *other))
        queue = location.home / rules.config.queue.path
        place = doctor.Place(location.repo, location.home, queue, rules.config, rules.target)
        return [*found, *doctor.findings(place)]

    def stack(self, report: Report) -> tuple[str, ...]:
        """Return the proposals below one, the nearest first."""
        return depends.under(self.context(), report).ids if report.state == "proposed" else ()

    @property
    def watched(self) -> tuple[Path, ...]:
        """The files and folders that change when a change gets another state.

        The marks of proposals are among them: a decision is an event before its mark goes.
        """
        context = self.context()
        refs, root = context.repo.commondir, context.queue_root
        return root / LOCKS, root / "inbox", refs / records.WAITING, refs / "packed-refs"

    def preview(self, id: str, only: frozenset[str]) -> Decided:
        """Return what accepting these edits alone would land."""
        from patchq.gate.review import accept

        return accept.preview(self.session(targeted=False), id, only)

    def blob(self, oid: str) -> bytes | None:
        """Return the content of a file by its id in git; None where there is no such file."""
        try:
            return self.context().repo.raw(oid)
        except (Fault, ValueError):
            return None

    def body(self, id: str) -> bytes | None:
        """Return the response of a change; None where the queue does not have it."""
        return store_queue(self.context().queue).body(id)

    def task(self, request: Request) -> Task:
        """Return the task of a request, with its files; raises `UsageError` for a wrong one."""
        from patchq.gate.pipeline.requests import query_of

        query = query_of(self.session(writes=False), request)
        if isinstance(query, tuple):
            raise UsageError(f"{query[0].code}: {query[0].message}", query[0].hint)
        assert query.task is not None
        return query.task

    def marks(self, kind: str, batch: str = "") -> Shelf:
        """Return what the person at this queue marked on a change, or on none."""
        context = self.context()
        person = context.repo.identity()
        key = "\n".join((kind, batch, person.email if person else ""))
        return Shelf(context.queue_root, key, strict=True)

    def overlaps(self) -> dict[str, Any]:
        """Return what is being written in work trees and branches, and what it overlaps."""
        from patchq.gate.review.ahead import ahead  # only who asks compares work trees

        return ahead(self.session(targeted=False, writes=False))

    def changed_since(self, event: str | None) -> tuple[frozenset[str], str]:
        """Return the changes with events behind that one (None: none yet), and the last event."""
        events = self.events(event)
        return frozenset(one["batch"] for one in events.read()), events.last

    def events(self, since: str | None = None) -> Events:
        """Return the stream of events after the given id, or from now on."""
        return Events(self.context().queue_root, since)

    def stats(self, by: str | None = None) -> list[dict[str, Any]]:
        """Return sums of verdicts and edits: a row for each agent, model, format or day."""
        context = self.context()
        if by == stats.DAY:
            return stats.days(self.events("").read())
        return stats.table(store_queue(context.queue).counts(), by)

    def owner(self) -> Owner | None:
        """Return the process that empties the inbox."""
        return lock_owner(self.context().queue_root)

    # ---------------------------------------------------------------- handing in

    def submit(
        self,
        change: Change,
        *,
        name: str = "response.md",
        client: str | None = None,
        **keys: Unpack[Keys],
    ) -> Ticket:
        """Put edits, or a response, into the inbox.

        The id is made of `name` unless the response has one.  `client` is the agent if nothing else
        names one.
        """
        return submitting.submit(self.context(writes=True), change, name, keys, client)

    def submit_commits(
        self, work: Commits, *, series: bool = False, **keys: Unpack[Keys]
    ) -> list[Ticket]:
        """Put commits into the inbox as one change, or as a `series`.

        A series is one change for each commit.
        """
        from patchq.core.model.names import COMMITS

        session = self.session(targeted=True)
        found = list(submitting.of_commits(session, work, keys, series=series))
        return [submitting.drop(session, data, name + COMMITS) for data, name in found]

    def check(
        self,
        change: Change,
        *,
        name: str = "response.md",
        corrects: bool = True,
        **keys: Unpack[Keys],
    ) -> Report:
        """Return the report that a change would get now; nothing is written, no hook is asked.

        The configured model `corrects` edits as it would then.
        """
        from patchq.gate.api import deciding

        data, _ = submitting.written(change, keys)
        return deciding.foresee(self.session(writes=False), data, name, corrects=corrects)

    def ask(self, request: bytes, name: str, tell: Tell) -> None:
        """Ask the model for edits and decide on its answers, with retries.

        `tell` is called with each verdict.  In a cluster a worker asks, and the first verdict ends
        the wait.
        """
        from patchq.gate.api import deciding

        deciding.ask_model(self.session(), request, name, tell)

    def wait(
        self,
        change: Ticket | str,
        until: Collection[str] = (),
        timeout: float | None = None,
        *,
        served: bool = False,
        stopped: Callable[[], bool] = lambda: False,
        unserved: Callable[[], None] = lambda: None,
    ) -> Report:
        """Return the report of a change once it has a verdict.

        If `until` is given, these are the states to wait for.  Raises `TimeIsUp` after `timeout`
        seconds; with `served` also where no daemon runs.  Calls `unserved` when that is so.
        """
        return waiting.wait(
            lambda: nullcontext(self),
            change,
            until or waiting.VERDICT,
            timeout,
            served=served,
            stopped=stopped,
            unserved=unserved,
        )

    def apply(
        self,
        change: Change,
        *,
        name: str = "response.md",
        ask: Ask | None = None,
        tell: Tell = lambda report: None,
        **keys: Unpack[Keys],
    ) -> Report:
        """Decide on a change at once; `ask` has a person confirm it, `tell` gets each verdict."""
        from patchq.gate.api import deciding

        session = self.session()
        data, _ = submitting.written(change, keys)
        choice = None
        if ask:
            unread = deciding.unread(session, data, name)
            choice = deciding.confirm(session, ask, lambda: False, unread)
        return deciding.apply(session, data, name, choice, tell)

    # ---------------------------------------------------------------- serving

    def service(self, say: Tell, ask: Ask | None = None, *, lasting: bool) -> Daemon:
        """Return this process as one that works on the queue; a daemon is `lasting`.

        `ask` has a person confirm what would land, and `say` gets each verdict.
        """
        from patchq.gate.api import deciding
        from patchq.gate.service.daemon import Daemon
        from patchq.gate.service.feed import Feeder

        session = self.session()
        kind = Feeder if session.config.has_cluster else Daemon
        service = kind(session, self.location.home, say, lasting=lasting)
        if ask:
            confirm = partial(deciding.confirm, session, ask, lambda: service.control.stop)
            service.session = replace(service.session, ask=confirm)
        return service

    def stop(self, say: Callable[[str], None], *, now: bool) -> int | None:
        """End the process that works on the queue; return its id, or None where none does.

        `say` gets what is waited for, which `now` does not wait for.
        """
        from patchq.gate.service import serve

        path = self.location.rules_to_look().config.queue.path
        return serve.stop(self.location.home / path, say, now=now)

    def work(self, tell: Tell, *, name: str | None, lanes: Sequence[str] | None) -> int:
        """Serve lanes of the cluster until a signal ends it; return the exit code."""
        from patchq.gate.service import lanes as cluster_lanes

        repo, rules = self.location.repo, self.location.rules()
        self.setup_log(rules.config)
        places = self.location.home, self.queue(rules.config).root
        return cluster_lanes.work(repo, places, rules, tell, self.reload, name=name, lanes=lanes)

    # ---------------------------------------------------------------- commands

    def check_known(self, ids: Iterable[str]) -> None:
        """Raise `UsageError` for an id that neither the queue nor git knows."""
        context = self.context()
        for id in ids:
            if not history.is_known(context, id):
                fault = history.unknown(context, id)
                raise UsageError(f"{fault.message}, so nothing is decided", fault.hint)

    def by_target(self, ids: Iterable[str]) -> list[list[str]]:
        """Return the changes as those of each target, which land together."""
        queue, found = self.context().queue, dict[str | None, list[str]]()
        for id in ids:
            known = queue.load(id)
            found.setdefault(known.target if known else None, []).append(id)
        return list(found.values())

    def identify(self, name: str) -> str:
        """Return the id that a name means: an id, a branch, a commit or a unique beginning."""
        return rows.identify(self.context(), name)

    def accept(
        self,
        ids: Iterable[str],
        only: Iterable[str] | None = None,
        without: Iterable[str] = (),
        *,
        stack: bool = False,
        seen: Mapping[str, str] = {},
        fail_fast: bool = False,
        wait: bool | None = None,
        watch: Watch | None = None,
    ) -> Decided:
        """Accept proposals of one target, or some edits of one, and land their train.

        One that is not at its commit in `seen` stays.  Without `wait` they land in another process,
        by default where a hook is a process.  `watch` sees each run of the hooks.
        """
        from patchq.gate.api import deciding
        from patchq.gate.review.accept import Accept

        session = self.session(targeted=False)
        wait = not session.hooks.parallel if wait is None else wait
        chosen = None if only is None else frozenset(only)
        errand = Accept(tuple(ids), chosen, frozenset(without), stack, {**seen}, fail_fast, wait)
        decided = deciding.decide(session, errand, watch)
        if not (wait or session.config.has_cluster or session.config.merges_there):
            deciding.start_train(self.options)
        return decided

    def discard(self, id: str, why: str | None = None, seen: str | None = None) -> Decided:
        """Take a change away that waits or is held."""
        from patchq.gate.review.decide import Discard

        return self._decide(Discard(id, why, seen))

    def send_back(
        self, id: str, comments: Iterable[CommentEntry], seen: str | None = None
    ) -> Decided:
        """Ask the agent of a proposal for changes."""
        from patchq.gate.review.errands import SendBack

        return self._decide(SendBack(id, tuple(comments), seen=seen))

    def discuss(self, id: str, comment: str, text: str = "", *, resolves: bool = False) -> Decided:
        """Resolve the thread of a comment, or reply to it."""
        from patchq.gate.review.errands import Discuss

        return self._decide(Discuss(id, comment, text, resolves=resolves))

    def undo(self, id: str) -> Decided:
        """Take the last decision on a change back: an acceptance, a request, a discard."""
        from patchq.gate.review.errands import TakeBack

        return self._decide(TakeBack(id))

    def revert(self, id: str) -> Decided:
        """Take back a change that landed, by a change of its own."""
        from patchq.gate.review.revert import Revert

        return self._decide(Revert(self.identify(id)))

    def _decide(self, errand: Errand) -> Decided:
        from patchq.gate.api import deciding

        return deciding.decide(self.session(targeted=False), errand)

    def outcome(self, id: str) -> Decided | None:
        """Return what a train made of an accepted proposal; None as long as it waits."""
        from patchq.gate.review import accept

        return accept.elsewhere(self.session(targeted=False), id)

    def run_trains(self, watch: Watch) -> list[Decided]:
        """Land what was accepted and waits, and return what became of it."""
        from patchq.gate.review import accept

        return accept.resume(self.session(targeted=False), watch)

    def reconcile(self) -> list[Report]:
        """Put down what was merged or rebased by hand; return the reports that changed."""
        from patchq.gate.land import reports

        return reports.reconcile(self.session(targeted=False, writes=False))

    def retry(
        self,
        id: str,
        without: Iterable[str] = (),
        tell: Tell = lambda report: None,
    ) -> Report:
        """Decide again on a change, but for the edits `without`; `tell` gets each verdict."""
        from patchq.gate.api import deciding
        from patchq.gate.review import decide

        session = self.session(targeted=False)
        return deciding.apply(session, *decide.another_try(session, id, frozenset(without)), tell)
