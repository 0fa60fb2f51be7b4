"""Tools of the server: each method is one, and its types are its schemas.

They run in threads of their own, so one that waits does not hold up others.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from tempfile import NamedTemporaryFile
from typing import Annotated, Any

import mcp_types as types
from mcp.server.mcpserver import Context
from msgspec.structs import replace
from pydantic import Field

from patchq.core.model.names import batch_id
from patchq.core.model.values import State
from patchq.gate.api import Gate, submitting, words
from patchq.gate.api.rows import ChangeRow, Filter
from patchq.gate.api.shared import SharedGate
from patchq.gate.api.submitting import Keys, Ticket
from patchq.gate.api.waiting import CHANGES_REQUESTED, STATES, VERDICT, wait
from patchq.gate.errors import TimeIsUp, UsageError
from patchq.gate.report import document
from patchq.gate.report.message import from_environment
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import STOPPED, WAITING, Report, waits_for_its_agent
from patchq.llm import prompts
from patchq.llm.request import MOST_FILES, Request, RequestedFile
from patchq.mcp.answers import (
    Base,
    ChangeId,
    CommentAnswer,
    Edits,
    Path,
    PromptAnswer,
    Response,
    Seconds,
    StatusAnswer,
    Target,
    VerdictAnswer,
    Word,
    change_of,
    for_tools,
    how_to_submit,
    result,
    verdict,
    what_to_send,
)

_MOST_LISTED, _MOST_PATHS = 200, 5
_LONGEST_NAME = 40
_ANY_TASK = "The change that you are asked for."
Verdict = Annotated[types.CallToolResult, VerdictAnswer]


class Tools:
    """Tools for one queue; `sender` is who submits, where the operator names it."""

    def __init__(self, door: SharedGate, agent: str | None = None) -> None:
        self.door, self._agent = door, agent
        self.ending: Callable[[], bool] = lambda: False  # then no wait lasts

    # ---------------------------------------------------------------- handing in

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
        answers: list[CommentAnswer] | None = None,
        wait_seconds: Seconds = 60.0,
    ) -> Verdict:
        """Submit edits, which become one commit or none, and wait for the verdict.

        Give `edits`, or a whole `response`. Keep the `token` to withdraw it. The same call twice
        changes nothing more.
        """
        keys = Keys(
            agent=self._agent,
            answers={one["comment"]: one["text"] for one in answers or ()},
            base=base,
            depends_on=depends_on,
            id=id,
            message=message,
            model=model,
            retries=retries,
            target=target,
        )
        change, name = change_of(edits, response), batch_id(message or "edit")[:_LONGEST_NAME]
        with self.door.gate(writes=True) as gate:
            ticket = gate.submit(change, name=name, client=_client(ctx), **keys)
            token = token_of(gate, ticket.sha256)
        replaced = next(iter(ticket.replaced), None)
        note = f"the argument {replaced} replaces the front matter's" if replaced else ""
        try:
            report = self._wait(ticket, VERDICT, wait_seconds, served=True)
        except TimeIsUp as late:
            return self._so_far(ticket, late, token)
        return self._answer(report, note=note, token=token)

    def _wait(
        self, change: Ticket | str, until: Collection[str], seconds: float, *, served: bool = False
    ) -> Report:
        return wait(
            self.door.gate, change, until, seconds, served=served, stopped=lambda: self.ending()
        )

    def _so_far(
        self, change: Ticket | str, late: TimeIsUp, token: str | None = None
    ) -> types.CallToolResult:
        id = change.id if isinstance(change, Ticket) else change
        note = f"{late.message}; ask with `wait` for {id}"
        with suppress(TimeIsUp):
            report = self._wait(change, STATES, 0.0)
            return self._answer(report, note=note, token=token, refuses=False)
        value = VerdictAnswer(id=id, state="waiting", problems=[], note=note)
        return result({**value, "token": token}, f"waiting    {id}  {note}")

    # ---------------------------------------------------------------- looking

    def check(
        self,
        edits: Edits = None,
        response: Response = "",
        base: Base = None,
        target: Target = None,
    ) -> Verdict:
        """Return the verdict that edits would get now, without submitting them.

        Each one's place or why it has none, what it collides with, whether the result parses, what
        a person would have to review. Hooks are not run.
        """
        change, keys = change_of(edits, response), Keys(base=base, target=target)
        with self.door.gate(targeted=True) as gate:
            report = gate.check(change, corrects=False, **keys)
            shown = for_tools(replace(report, diff=""))  # the caller has the edits
            data, _ = submitting.written(change, keys)
            page = _page(gate, shown, data, foreseen=True)
        text = f"would be {words.line(shown)}\n\n{page}"
        return result(verdict(shown), text, refused=report.state == "rejected")

    def wait(
        self,
        id: ChangeId,
        known: Annotated[
            State | None, Field(description="the state that you know; default: no verdict yet")
        ] = None,
        wait_seconds: Seconds = 60.0,
    ) -> Verdict:
        """Wait until a change has a verdict or, with `known`, another state than that."""
        until = STATES - {known or "held"}
        until |= {CHANGES_REQUESTED} if known == "proposed" else set()
        try:
            self._wait(id, until, wait_seconds)
        except TimeIsUp as late:
            return self._so_far(id, late)
        row = self._seen(id)
        asks = known == "proposed" and waits_for_its_agent(row.report)
        note = "a person asks for changes; `report` tells which" if asks else row.note
        return self._answer(row.report, note=note)

    def _seen(self, id: str) -> ChangeRow:
        with self.door.gate() as gate:
            row = gate.find(id)
        if not isinstance(row, ChangeRow):
            raise UsageError(f"{id} has no verdict yet", "ask with `wait`")
        return replace(row, report=for_tools(row.report))

    def report(
        self,
        id: ChangeId,
        full: Annotated[bool, Field(description="everything, with the diff")] = False,
    ) -> Verdict:
        """Return the verdict on a change and, if it was refused, what to send."""
        row = self._seen(id)
        value: dict[str, Any] = dict(verdict(row.report, row.note))
        if row.risk and row.report.state == "proposed":
            texts = "; ".join(reason.text for reason in row.risk.reasons)
            value["risk"] = f"{row.risk.level}{': ' * bool(texts)}{texts}"
        with self.door.gate() as gate:
            text = _page(gate, row.report) + (f"\nNote: {row.note}" if row.note else "")
        return result({**value, "report": row.report} if full else value, text)

    def status(
        self,
        ctx: Context,
        agent: Annotated[
            Word | None, Field(description="only those of this agent; `me`: yours")
        ] = None,
        state: State | None = None,
        limit: Annotated[int, Field(ge=1, le=_MOST_LISTED)] = 20,
    ) -> Annotated[types.CallToolResult, StatusAnswer]:
        """List the changes that wait or are held, and show if a daemon runs.

        With `state`, those of that state, the newest first.
        """
        if agent == "me":
            agent = self._agent or from_environment().get("agent") or _client(ctx)
        return self.listed(agent, state, limit)

    def listed(
        self, agent: str | None = None, state: State | None = None, limit: int = 20
    ) -> types.CallToolResult:
        where = Filter(state, agent)
        with self.door.gate() as gate:
            seen = gate.status(where, limit)
            rows, left_out = seen.rows, sum(seen.left_out.values())
            if state not in (None, *WAITING):
                found = gate.batches(where, limit)
                rows, left_out = found.rows, int(found.more)
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
        with self.door.gate(targeted=True) as gate:
            about = gate.task(Request(files=asked, task=task or _ANY_TASK, form="diff"))
        prompt = prompts.build(about, ending=how_to_submit(about.base)).text
        return result(PromptAnswer(base=about.base, prompt=prompt), prompt)

    def withdraw(
        self, id: ChangeId, token: Annotated[Word, Field(description="what `submit` returned")]
    ) -> Verdict:
        """Take back a change that you submitted and that waits or is held."""
        with self.door.gate(writes=True) as gate:
            report = gate.context(writes=True).queue.load(id)
            right = token_of(gate, report.source.sha256) if report else ""
            if not report or not hmac.compare_digest(token.encode(), right.encode()):
                raise UsageError(
                    f"the token is not that of a change {id}", "give the one that `submit` returned"
                )
            report = gate.discard(id).report
        return self._answer(report)

    def _answer(
        self, report: Report, *, note: str = "", refuses: bool = True, token: str | None = None
    ) -> types.CallToolResult:
        report = for_tools(report)
        refused = refuses and report.state == "rejected"
        warnings = [f"  {p.code}: {p.message}" for p in report.problems]
        text = "\n".join([words.line(report), *warnings])
        if refused:
            with self.door.gate() as gate:
                text = _page(gate, report)
        value = {**verdict(report, note), "token": token}
        return result(value, text + (f"\nNote: {note}" if note else ""), refused=refused)


def _client(ctx: Context) -> str | None:
    client = ctx.session.client_params
    return client.client_info.name if client else None


def _page(gate: Gate, report: Report, data: bytes | None = None, *, foreseen: bool = False) -> str:
    send = None
    if report.state == "rejected" or waits_for_its_agent(report):
        send = what_to_send(gate, report, data or gate.body(report.id))
    return to_markdown(report, send=send, foreseen=foreseen)


def _row(row: ChangeRow) -> dict[str, Any]:
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


# ---------------------------------------------------------------- tokens


_KEY = "mcp.key"  # the key of tokens; below the queue, so that they outlive the server


def token_of(gate: Gate, sha256: str) -> str:
    """Return the token of a response, which shows that its bearer submitted these bytes."""
    root = gate.context().queue_root
    with NamedTemporaryFile(dir=root, prefix=f".{_KEY}.") as scratch:  # for its owner alone
        scratch.write(secrets.token_bytes(32))
        scratch.flush()
        with suppress(FileExistsError):
            os.link(scratch.name, root / _KEY)  # of two that make one, both use the first
    return hmac.digest((root / _KEY).read_bytes(), sha256.encode(), "sha256").hex()[:32]
