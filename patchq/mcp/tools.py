"""Tools of the server: each method is one, and its types are its schemas.

They run in threads of their own, so one that waits does not hold up others.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar

import mcp_types as types
from mcp.server.mcpserver import Context
from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope, State
from patchq.gate.api import Gate, deciding, dry_run, finding, submitting, words
from patchq.gate.api.rows import ChangeRow, Filter
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import UsageError
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.requests import query_of
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report import document, secrecy
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import STOPPED, WAITING, Report, waits_for_its_agent
from patchq.gate.report.sender import Sender, from_environment, with_header
from patchq.gate.review.comparison import risk_of
from patchq.gate.review.errands import Discard
from patchq.gate.service.watcher import Watcher
from patchq.llm import prompts
from patchq.llm.request import MOST_FILES, Request, RequestedFile
from patchq.mcp import arguments
from patchq.mcp.answers import (
    PromptAnswer,
    StatusAnswer,
    VerdictAnswer,
    result,
    verdict,
)
from patchq.mcp.arguments import AnswerArguments, ChangeId, EditArguments, Path, Seconds, Word
from patchq.mcp.resend import what_to_send
from patchq.mcp.tokens import token as token_of

_MOST_LISTED, _MOST_PATHS = 200, 5
_LOOK_SECONDS = 1.0  # a daemon that ends, or a branch that git moves, is no event
_NO_DAEMON = (
    "no daemon works on the queue: the change lies in the inbox, and gets its verdict once a "
    "person starts one"
)
_ANY_TASK = "The change that you are asked for."
Verdict = Annotated[types.CallToolResult, VerdictAnswer]
Edits = Annotated[list[EditArguments] | None, Field(min_length=1)]
Response = Annotated[str, Field(description="edits in any form that patchq reads")]
Base = Annotated[Word | None, Field(description="the commit you read the files from")]
Target = Annotated[Word | None, Field(description="a branch; else the configured one")]
T = TypeVar("T")


class Dropped(Struct, frozen=True):
    """A change in the inbox."""

    id: str
    name: str
    sha256: str
    token: str
    since: str
    """The id of the last event before."""


class Tools:
    """Tools for one queue; `sender` is who submits, where the operator names it."""

    def __init__(self, door: SharedGate, sender: Sender | None = None) -> None:
        self._door, self._sender = door, sender or Sender()
        self._watchers = set[Watcher]()
        self.ending: Callable[[], bool] = lambda: False
        self.missing: UsageError | None = None

    def enter(self, roots: Sequence[FilePath]) -> None:
        """Go to the repository of the first root that is in one, else of the working directory."""
        for directory in (*roots, FilePath.cwd()):
            with suppress(UsageError):
                Repository.open(directory)
                self._door.enter(directory)
                self.missing = None
                return
        named = f"none of the client's roots ({', '.join(map(str, roots))})" if roots else ""
        self.missing = UsageError(
            f"the server's directory {FilePath.cwd()} is in no git repository, and "
            + (f"{named} is in one" if named else "the client names no roots"),
            "open a repository in the client",
        )

    def end(self) -> None:
        """Have every call that waits answer now."""
        self.ending = lambda: True
        for watcher in list(self._watchers):
            watcher.ring()

    # ---------------------------------------------------------------- submitting

    def submit(
        self,
        ctx: Context,
        edits: Edits = None,
        response: Response = "",
        base: Base = None,
        target: Target = None,
        message: Annotated[str, Field(description="the commit's message")] = "",
        id: Annotated[
            ChangeId | None, Field(description="replaces your waiting change of this id")
        ] = None,
        model: Word | None = None,
        retries: Annotated[
            ChangeId | None, Field(description="the change that this one answers")
        ] = None,
        depends_on: Annotated[
            list[ChangeId] | None, Field(description="changes that must land first")
        ] = None,
        answers: list[AnswerArguments] | None = None,
        wait_seconds: Seconds = 60.0,
    ) -> Verdict:
        """Hand in edits, all of which become one commit or none, and wait for the verdict.

        Give `edits`, or a whole `response`. Keep the `token` to withdraw it. The same call twice
        changes nothing more.
        """
        keys: dict[str, Any] = {
            "id": id,
            "message": message,
            "retries": retries,
            "depends_on": depends_on,
        }
        keys |= {"target": target, "base": base}
        keys |= {"answers": {one.comment: one.text for one in answers or ()}}
        given = self._sender.or_else(Sender(model=model))
        data, replaced = self._data(ctx, edits, response, {**keys, **given.keys()})
        dropped = self._drop(data)
        report = self._until(
            lambda: self._report_on(dropped), wait_seconds, since=dropped.since, unserved=False
        )
        note = f"the argument {replaced[0]} replaces the front matter's" if replaced else ""
        if report is not None:
            return self._answer(report, data, note=note, token=dropped.token)
        note = f"no verdict yet; ask with `wait` for {dropped.id}"
        note = note if self._served() else _NO_DAEMON
        if held := self._report_on(dropped, held=True):
            return self._answer(held, data, note=note, token=dropped.token)
        return _waiting(dropped.id, note, dropped.token)

    def _data(
        self,
        ctx: Context,
        edits: list[EditArguments] | None,
        response: str,
        keys: Mapping[str, Any],
    ) -> tuple[bytes, list[str]]:
        """Return the response's bytes: the same call gives the same, so that a second is known."""
        if bool(edits) == bool(response):
            raise UsageError("expected one of `response` and `edits`, and it not empty")
        client = ctx.session.client_params
        fallback = from_environment().or_else(Sender(client and client.client_info.name))
        try:
            data = (arguments.response(edits) if edits else response).encode()
        except UnicodeEncodeError:
            raise UsageError("the text holds half of a surrogate pair", "send UTF-8") from None
        return with_header(data, {key: value for key, value in keys.items() if value}, fallback)

    def _drop(self, data: bytes) -> Dropped:
        with self._session(writes=True) as session:
            if problem := dry_run.oversize(session, data):
                raise UsageError(f"{problem.code}: {problem.message}", problem.hint)
            queue, opened = store_queue(session.queue), open_response(data)
            header = opened.header if isinstance(opened, Envelope) else None
            digest = sha256(data).hexdigest()
            token = token_of(session.queue_root, digest)
            words = (header and (header.message or header.agent)) or "edit"
            with closing(Watcher(queue.root)) as watcher:
                since = watcher.last
            name = queue.submit(data, submitting.marked_name(words))
            id = secrecy.batch_id(header.id) if header and header.id else None
            id = queue.next_id(id) if id else name.removesuffix(".md")
            return Dropped(id, name, digest, token, since)

    def _report_on(self, dropped: Dropped, held: bool = False) -> Report | None:
        with self._session(writes=True) as session:
            report = submitting.report_on(session.queue, dropped.sha256, dropped.name)
        return report if report and (held or report.state != "held") else None

    def _served(self) -> bool:
        with self._session() as session:
            return lock_owner(session.queue_root) is not None

    def _until(
        self,
        look: Callable[[], T | None],
        seconds: float,
        *,
        since: str | None = None,
        unserved: bool = True,
    ) -> T | None:
        """Return what `look` finds in time; None also once no daemon runs, unless `unserved`."""
        until = time.monotonic() + seconds
        with self._session() as session:
            root = session.queue_root
        with closing(Watcher(root, since)) as watcher:
            self._watchers.add(watcher)
            try:
                while True:
                    watcher.read()
                    served = unserved or self._served()  # first: a daemon that ends has decided
                    found, left = look(), until - time.monotonic()
                    if found is not None or self.ending() or left <= 0 or not served:
                        return found
                    watcher.wait(min(left, _LOOK_SECONDS))
            finally:
                self._watchers.discard(watcher)

    # ---------------------------------------------------------------- looking

    def check(
        self,
        ctx: Context,
        edits: Edits = None,
        response: Response = "",
        base: Base = None,
        target: Target = None,
    ) -> Verdict:
        """Tell what would become of edits now, without handing them in.

        Each one's place or why it has none, what it collides with, whether the result parses, what
        a person would have to review. Hooks are not run.
        """
        data, _ = self._data(ctx, edits, response, {"base": base, "target": target})
        with self._session(targeted=True) as session:
            report = dry_run.foresee(_without_model(session), data, "response.md")
        page = self._page(replace(report, diff=""), data, foreseen=True)  # the caller has the edits
        text = f"would be {words.line(report)}\n\n{page}"
        return result(verdict(report), text, refused=report.state == "rejected")

    def wait(
        self,
        id: ChangeId,
        known: Annotated[
            State | None, Field(description="the state that you know; default: no verdict yet")
        ] = None,
        wait_seconds: Seconds = 60.0,
    ) -> Verdict:
        """Wait until a change has a verdict or, with `known`, another state than that."""
        found = self._until(lambda: self._changed(id, known or "held"), wait_seconds)
        if found is not None:
            return self._answer(found[0], note=found[1])
        try:
            report, _ = self._seen(id)
        except UsageError:
            return _waiting(id, "no verdict yet" if self._served() else _NO_DAEMON)
        return self._answer(report, note="nothing changed meanwhile", refuses=False)

    def _changed(self, id: str, known: str) -> tuple[Report, str] | None:
        with self._session() as session:  # first: what is no longer under way has its verdict
            busy = session.queue.depth() > 0 or bool(store_queue(session.queue).in_hand())
            under_way = busy or finding.is_under_way(session, id)
        try:
            report, note = self._seen(id)
        except UsageError:
            if under_way:
                return None
            raise
        if waits_for_its_agent(report) and known == "proposed":
            return report, "a person asks for changes; `report` tells which"
        return None if report.state == known else (report, note)

    def _seen(self, id: str) -> tuple[Report, str]:
        with self._session() as session:
            return finding.seen(session, *finding.find(session, finding.identify(session, id)))

    def report(
        self,
        id: ChangeId,
        full: Annotated[bool, Field(description="everything, with the diff")] = False,
    ) -> Verdict:
        """Return the verdict on a change and, where it was refused, what to send instead."""
        report, note = self._seen(id)
        value: dict[str, Any] = dict(verdict(report, note))
        if report.state == "proposed":
            with self._session() as session:
                found = risk_of(session, report)
            texts = "; ".join(reason.text for reason in found.reasons)
            value["risk"] = f"{found.level}{': ' * bool(texts)}{texts}"
        text = self._page(report) + (f"\nNote: {note}" if note else "")
        return result({**value, "report": report} if full else value, text)

    def status(
        self,
        ctx: Context,
        agent: Annotated[
            Word | None, Field(description="only those of this agent; `me`: yours")
        ] = None,
        state: State | None = None,
        limit: Annotated[int, Field(ge=1, le=_MOST_LISTED)] = 20,
    ) -> Annotated[types.CallToolResult, StatusAnswer]:
        """List the changes that wait or are held, and tell whether a daemon runs.

        With `state`, those of that state, the newest first.
        """
        if agent == "me":
            client = ctx.session.client_params
            own = self._sender.or_else(from_environment())
            agent = own.or_else(Sender(client and client.client_info.name)).agent
        return self.listed(agent, state, limit)

    def listed(
        self, agent: str | None = None, state: State | None = None, limit: int = 20
    ) -> types.CallToolResult:
        """Return the answer of `status`."""
        where = Filter(state, agent)
        with self._gate() as gate:
            seen = gate.status(where, limit)
            rows, left_out = seen.rows, sum(seen.left_out.values())
            if state not in (None, *WAITING):
                found = gate.batches(where, limit)
                rows, left_out = found.rows, abs(found.left_out)
        answer = {
            "daemon": seen.daemon is not None,
            **{key: getattr(seen, key) for key in ("target", "mode", "inbox", "busy")},
            "trains": list(map(words.train, seen.trains)),
            "troubles": [f"{one['what']}: {one['why']}" for one in seen.troubles],
            "batches": [_row(row) for row in rows[:limit]],
            "left_out": left_out + len(rows[limit:]),
        }
        return result(answer, document.printed(answer))

    # ---------------------------------------------------------------- the rest

    def how_to_answer(
        self,
        files: Annotated[list[Path], Field(min_length=1, max_length=MOST_FILES)],
        task: str = "",
    ) -> Annotated[types.CallToolResult, PromptAnswer]:
        """Return files as they are, their base commit, and the arguments that change them."""
        asked = tuple(RequestedFile(path=path) for path in dict.fromkeys(files))
        with self._session(targeted=True) as session:
            query = query_of(session, Request(files=asked, task=task or _ANY_TASK, form="diff"))
        if isinstance(query, tuple):
            raise UsageError(f"{query[0].code}: {query[0].message}", query[0].hint)
        assert query.task is not None
        base = query.task.base
        prompt = prompts.build(query.task, ending=arguments.how_to_submit(base)).text
        return result(PromptAnswer(base=base, prompt=prompt), prompt)

    def withdraw(
        self, id: ChangeId, token: Annotated[Word, Field(description="what `submit` returned")]
    ) -> Verdict:
        """Take back a change that you submitted and that waits or is held."""
        with self._session(writes=True) as session:
            report = session.queue.load(id)
            if report is None:
                raise UsageError(f"there is no verdict on {id}", "see `status`")
            right = token_of(session.queue_root, report.source.sha256)
            if not hmac.compare_digest(token.encode(), right.encode()):
                raise UsageError(
                    f"the token is not that of {id}", "give the one that `submit` returned"
                )
            finish = deciding.begun(session, Discard(id))
        return self._answer(finish().report)  # a worker is waited for without the session

    def retry_prompt(self, id: str) -> str:
        """Return what to ask a model for after a refusal."""
        report, _ = self._seen(id)
        if not report.retry.prompt:
            raise UsageError(f"{id} was not refused: it is {report.state}", "see `status`")
        return self._page(report)

    def _answer(
        self,
        report: Report,
        data: bytes | None = None,
        *,
        note: str = "",
        refuses: bool = True,
        token: str | None = None,
    ) -> types.CallToolResult:
        """Return the report in one line; a refusal as its page, which holds what to send."""
        refused = refuses and report.state == "rejected"
        warnings = [f"  {p.code}: {p.message}" for p in report.problems]
        text = "\n".join([words.line(report), *warnings])
        text = self._page(report, data) if refused else text
        value = {**verdict(report, note), "token": token}
        return result(value, text + (f"\nNote: {note}" if note else ""), refused=refused)

    def _page(self, report: Report, data: bytes | None = None, *, foreseen: bool = False) -> str:
        """Return the report's page; how to answer is in the arguments of `submit`."""
        send = None
        if report.state == "rejected" or waits_for_its_agent(report):
            with self._session() as session:
                data = data or store_queue(session.queue).body(report.id)
                send = what_to_send(session, report, data)
        return to_markdown(report, send=send, foreseen=foreseen)

    @contextmanager
    def _gate(self) -> Iterator[Gate]:
        if self.missing is not None:
            raise self.missing
        with self._door.gate() as gate:
            yield gate

    @contextmanager
    def _session(self, *, targeted: bool = False, writes: bool = False) -> Iterator[Session]:
        if self.missing is not None:
            raise self.missing
        with self._door.session(targeted=targeted, writes=writes) as session:
            yield session


def _without_model(session: Session) -> Session:
    """Return the session without its model: a check answers at once."""
    config = session.config
    if not config.llm.model:
        return session
    return replace(session, config=replace(config, llm=replace(config.llm, correct=False)))


def _waiting(id: str, note: str, token: str | None = None) -> types.CallToolResult:
    value = VerdictAnswer(id=id, state="waiting", problems=[], note=note)
    return result({**value, "token": token}, f"waiting    {id}  {note}")


def _row(row: ChangeRow) -> dict[str, Any]:
    """Return a change of a list, without what is not known of it."""
    report, problem = row.report, row.why if row.report.state in STOPPED else None
    others = dict.fromkeys(
        one.conflicts_with.batch or "" for one in row.collides if one.conflicts_with
    )
    comments = report.review.unresolved if report.review and row.waits_for == "agent" else ()
    value: dict[str, Any] = {
        "paths": row.paths[:_MOST_PATHS],
        "subject": report.message,
        "age_seconds": int(time.time() - report.received.unix) if report.received else None,
        "size": document.plain(report.size),
        "why": (f"{problem.code}: {problem.message}" if problem else row.needs_retry)
        or (f"collides with {', '.join(others)}" if others else row.note or None),
        "waits_for": row.waits_for,
        "open_comments": len(comments) or None,
        "risk": row.risk.level if row.risk and report.state == "proposed" else None,
        **{key: getattr(report, key) for key in ("id", "state", "agent", "target")},
    }
    return {key: item for key, item in value.items() if item is not None}
