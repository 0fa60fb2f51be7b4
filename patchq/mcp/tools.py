"""What each tool does.  Nothing here knows the protocol: arguments in, an answer out."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from patchq.cli import batches, check, deciding, output, status, submit, wait
from patchq.cli.door import Door
from patchq.cli.listing import Filter
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import EditOutcome, Envelope
from patchq.gate.errors import UsageError
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.requests import query_of
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import QueueEngine
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.events import Events
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report import document, secrecy
from patchq.gate.report.document import plain
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import STOPPED, WAITING, ProblemEntry, Report, waits_for_its_agent
from patchq.gate.review.comparison import risk_of
from patchq.gate.review.errands import Discard
from patchq.gate.service.watcher import Watcher
from patchq.llm import prompts
from patchq.llm.request import Request, RequestedFile
from patchq.mcp import calls
from patchq.mcp.arguments import (
    AnswerArguments,
    BatchAnswer,
    Change,
    CheckArguments,
    EditAnswer,
    ProblemAnswer,
    PromptAnswer,
    ReportArguments,
    StatusArguments,
    SubmitArguments,
    VerdictAnswer,
    WaitArguments,
    WithdrawArguments,
)
from patchq.mcp.tokens import token as token_of

_MOST_PROBLEMS, _MOST_EDITS, _MOST_PATHS = 20, 100, 5
_MOST_LOOKED_AT = 1000
"""Finished batches that `status` looks through for those of a state or an agent."""
_FIRST_PAUSE, _LAST_PAUSE = 0.0005, 0.05
_SOON = 0.1
"""When most verdicts are there; until then the pause is the first."""
_SETTLES = 0.06
"""For so long after a sign of change one looks: two changes may have the same time."""
_LOOK_ANYWAY = 1.0
_NO_DAEMON = (
    "no daemon works on the queue: the response lies in the inbox and gets its verdict once "
    "somebody runs `patchq watch` or `patchq run`"
)
T = TypeVar("T")


class ToolAnswer(Struct, frozen=True):
    """What a tool gives: for programs, for a model to read, and whether it is a refusal."""

    value: Mapping[str, Any]
    text: str
    refused: bool = False


class Dropped(Struct, frozen=True):
    """A response in the inbox."""

    id: str
    name: str
    sha256: str
    token: str
    served: bool
    """Whether a daemon runs."""
    root: Path
    since: str
    """The id of the last event before."""


class Tools:
    """The tools for one queue; `agent` is who submits, where the operator says so.  `ending` tells
    that the server is to end, which cuts short what waits."""

    def __init__(
        self, door: Door, agent: str | None = None, ending: Callable[[], bool] = lambda: False
    ) -> None:
        self._door, self._agent, self.ending = door, agent, ending
        self.placed = True

    def enter(self, roots: Sequence[Path]) -> None:
        """Go to the repository of the first root that is in one, else of the working directory."""
        for directory in (*roots, Path.cwd()):
            with suppress(UsageError):
                Repository.open(directory)
                self._door.enter(directory)
                self.placed = True
                return
        named = f"none of the client's roots ({', '.join(map(str, roots))})" if roots else ""
        raise UsageError(
            f"the server's directory {Path.cwd()} is in no git repository, and "
            + (f"{named} is in one" if named else "the client names no roots"),
            "open a repository in the client",
        )

    # ---------------------------------------------------------------- submitting

    async def submit(self, asked: SubmitArguments) -> ToolAnswer:
        began = time.monotonic()
        dropped, report = await to_thread.run_sync(self._handed_in, asked)
        beside: VerdictAnswer = {"id": dropped.id, "state": "waiting", "problems": []}
        beside["token"] = dropped.token
        if dropped.served and report is None:
            with closing(Watcher(dropped.root, dropped.since)) as watcher:
                left = asked.wait_seconds - (time.monotonic() - began)
                report = await self._heard(dropped, watcher, left)
        if report is None:
            served = dropped.served and await to_thread.run_sync(self._served)
            note = f"no verdict yet; ask with `wait` for {dropped.id}" if served else _NO_DAEMON
            if held := await to_thread.run_sync(self._report, dropped):
                answer = _told(held, note=note)
                return ToolAnswer({**answer.value, "token": dropped.token}, answer.text)
            return ToolAnswer({**beside, "note": note}, f"waiting    {dropped.id}  {note}")
        answer = _told(report)
        return ToolAnswer({**answer.value, "token": dropped.token}, answer.text, answer.refused)

    def _handed_in(self, asked: SubmitArguments) -> tuple[Dropped, Report | None]:
        """Drop the response, and wait in the same thread for as long as most verdicts take."""
        dropped = self._drop(asked)
        if not dropped.served:
            return dropped, None
        until = time.monotonic() + min(_SOON, asked.wait_seconds)
        with closing(Watcher(dropped.root, dropped.since)) as watcher:
            while not self._is_told(dropped, watcher):
                if time.monotonic() >= until or self.ending():
                    return dropped, None
                time.sleep(_FIRST_PAUSE)
        return dropped, self._verdict(dropped)

    def _is_told(self, dropped: Dropped, watcher: Watcher) -> bool:
        """Whether an event has told of the verdict since it was asked last."""
        return watcher.wait(0) and any(
            event["source"] == dropped.name and event["kind"] != "held" for event in watcher.read()
        )

    async def _heard(self, dropped: Dropped, watcher: Watcher, seconds: float) -> Report | None:
        """The verdict, once an event tells of one; None where it does not in that time, or
        nobody is there to decide."""
        began = looked = time.monotonic()
        pause = _FIRST_PAUSE
        while True:
            now = time.monotonic()
            told = self._is_told(dropped, watcher)
            if told or now - looked > _LOOK_ANYWAY:
                if report := await to_thread.run_sync(self._verdict, dropped):
                    return report
                if not told and not await to_thread.run_sync(self._served):
                    return None
                looked = now
            left = began + seconds - time.monotonic()
            if left <= 0 or self.ending():
                return None
            await anyio.sleep(min(pause, left))
            pause = min(pause * 1.1, _LAST_PAUSE)

    def _drop(self, asked: SubmitArguments) -> Dropped:
        keys = {
            "id": asked.id,
            "message": asked.message,
            "model": asked.model,
            "retries": asked.retries,
            "depends_on": asked.depends_on or None,
        }
        data = self._data(asked, {**keys, "agent": self._agent})
        with self._door.session(writes=True) as session:
            if problem := check.oversize(session, data):
                raise UsageError(f"{problem.code}: {problem.message}", problem.hint)
            queue, opened = store_queue(session.queue), open_response(data)
            header = opened.header if isinstance(opened, Envelope) else None
            digest = sha256(data).hexdigest()
            token = token_of(session.queue_root, digest)
            words = (header and (header.message or header.agent)) or "edit"
            with closing(Events(queue.root)) as events:
                since = events.last
            name = queue.submit(data, submit.marked_name(words))
            id = secrecy.batch_id(header.id) if header and header.id else None
            return Dropped(
                queue.next_id(id) if id else name.removesuffix(".md"),
                name,
                digest,
                token,
                lock_owner(queue.root) is not None,
                queue.root,
                since,
            )

    def _data(self, change: Change, keys: Mapping[str, Any]) -> bytes:
        """The response's bytes: the same call gives the same, so that a second one is known."""
        text = calls.response(change.edits) if change.edits else change.response or ""
        if not text:
            raise UsageError("`response` is empty", "give the edits, or a whole response")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise UsageError("the text holds half of a surrogate pair", "send UTF-8") from None
        said = {"target": change.target, "base": change.base, **keys}
        try:
            return submit.with_header(data, {k: v for k, v in said.items() if v is not None})
        except UsageError as error:
            hint = "say it in the front matter or beside the response, once"
            raise UsageError(error.message, hint) from None

    def _verdict(self, dropped: Dropped) -> Report | None:
        report = self._report(dropped)
        return report if report and report.state != "held" else None

    def _report(self, dropped: Dropped) -> Report | None:
        with self._door.session(writes=True) as session:
            return submit.report_on(session.queue, dropped.sha256, dropped.name)

    def _served(self) -> bool:
        with self._door.session() as session:
            return lock_owner(session.queue_root) is not None

    async def _until(self, look: Callable[[], T | None], seconds: float) -> T | None:
        """What `look` finds, within the time; None also where nobody is there to decide."""
        began = moved = looked = time.monotonic()
        pause, seen = _FIRST_PAUSE, object()
        while True:
            now, pulse = time.monotonic(), self._door.pulse()
            if pulse != seen:
                seen, moved = pulse, now
            if now - moved < _SETTLES or now - looked > _LOOK_ANYWAY:
                if (found := await to_thread.run_sync(look)) is not None:
                    return found
                if now - looked > _LOOK_ANYWAY and not await to_thread.run_sync(self._served):
                    return None
                looked = now if now - looked > _LOOK_ANYWAY else looked
            left = began + seconds - time.monotonic()
            if left <= 0 or self.ending():
                return None
            await anyio.sleep(min(pause, left))
            if now - began > _SOON:
                pause = min(pause * 1.1, _LAST_PAUSE)

    # ---------------------------------------------------------------- looking

    async def check(self, asked: CheckArguments) -> ToolAnswer:
        return await to_thread.run_sync(self._check, asked)

    def _check(self, asked: CheckArguments) -> ToolAnswer:
        data = self._data(asked, {"agent": self._agent})
        with self._door.session(targeted=True) as session:
            report = check.foresee(_without_model(session), data, "response.md")
        page = to_markdown(replace(report, diff=""), foreseen=True)  # the caller wrote the edits
        text = f"would be {output.line(report)}\n\n{page}"
        return ToolAnswer(_value(report, ""), text, report.state == "rejected")

    async def wait(self, asked: WaitArguments) -> ToolAnswer:
        found = await self._until(partial(self._changed, asked), asked.wait_seconds)
        if found is not None:
            report, note = found
            return _told(report, note=note)
        try:
            report, _ = await to_thread.run_sync(self._seen, asked.id)
        except UsageError:
            if not await to_thread.run_sync(self._undecided, asked.id):
                raise
            note = "no verdict yet" if await to_thread.run_sync(self._served) else _NO_DAEMON
            waiting: VerdictAnswer = {"id": asked.id, "state": "waiting", "problems": []}
            return ToolAnswer({**waiting, "note": note}, f"waiting    {asked.id}  {note}")
        return _told(report, note="nothing changed meanwhile", refuses=False)

    def _changed(self, asked: WaitArguments) -> tuple[Report, str] | None:
        undecided = self._undecided(asked.id)  # before: what is not any more has its verdict
        try:
            report, note = self._seen(asked.id)
        except UsageError:
            if undecided:
                return None
            raise
        known = ("held",) if asked.known is None else (asked.known,)
        if waits_for_its_agent(report) and asked.known == "proposed":
            return report, "a person asks for changes; `report` tells which"
        return None if report.state in known else (report, note)

    def _undecided(self, id: str) -> bool:
        """Whether the batch has no verdict yet, or there are some of which nobody knows the ids."""
        with self._door.session() as session:
            unknown = session.queue.depth() > 0 or bool(store_queue(session.queue).in_hand())
            return unknown or wait.is_under_way(session, id)

    def _seen(self, id: str) -> tuple[Report, str]:
        with self._door.session() as session:
            return batches.seen(session, *batches.find(session, id))

    async def report(self, asked: ReportArguments) -> ToolAnswer:
        report, note = await to_thread.run_sync(self._seen, asked.id)
        told = _told(report, to_markdown(report), note=note, refuses=False)
        value = dict(told.value)
        if report.state == "proposed":
            value["risk"] = await to_thread.run_sync(self._risk, report)
        return ToolAnswer({**value, "report": report} if asked.full else value, told.text)

    def _risk(self, report: Report) -> str:
        with self._door.session() as session:
            found = risk_of(session, report)
        texts = "; ".join(reason.text for reason in found.reasons)
        return f"{found.level}{': ' * bool(texts)}{texts}"

    async def status(self, asked: StatusArguments) -> ToolAnswer:
        return await to_thread.run_sync(self._status, asked)

    def _status(self, asked: StatusArguments) -> ToolAnswer:
        with self._door.session() as session:
            of = asked.state if asked.state in WAITING else None
            seen = status.overview(session, asked.limit, of, Filter(agent=asked.agent))
            if asked.state in (None, *WAITING):
                held = [
                    _listed(report)
                    for one in seen["held"]
                    if (report := session.queue.load(one["id"]))
                ]
                listed = [*held, *map(_waiting, seen["waiting"])]
                more = sum(seen["left_out"].values())
            else:
                more = 0
                listed = list(
                    islice(_finished(session.queue, asked.state, asked.agent), asked.limit + 1)
                )
        wanted = [
            one
            for one in listed
            if asked.agent in (None, one.get("agent")) and asked.state in (None, one["state"])
        ]
        answer = {
            "daemon": seen["daemon"] is not None,
            **_told_of({key: seen[key] for key in ("target", "mode", "inbox", "busy")}),
            "troubles": [f"{one['what']}: {one['why']}" for one in seen["troubles"]],
            "batches": wanted[: asked.limit],
            "left_out": len(wanted[asked.limit :]) + more,
        }
        return ToolAnswer(answer, document.printed(answer))

    # ---------------------------------------------------------------- the rest

    async def how_to_answer(self, asked: AnswerArguments) -> ToolAnswer:
        return await to_thread.run_sync(self._how_to_answer, asked)

    def _how_to_answer(self, asked: AnswerArguments) -> ToolAnswer:
        files = tuple(RequestedFile(path) for path in dict.fromkeys(asked.files))
        task = asked.task or "What you were told to do."
        with self._door.session(targeted=True) as session:
            query = query_of(session, Request(files, task, asked.form))
        if isinstance(query, tuple):
            raise UsageError(f"{query[0].code}: {query[0].message}", query[0].hint)
        assert query.task is not None
        prompt = prompts.build(query.task)
        value: PromptAnswer = {"form": prompt.form, "base": query.task.base, "prompt": prompt.text}
        return ToolAnswer(value, prompt.text)

    async def retry_prompt(self, asked: ReportArguments) -> str:
        """What to ask a model for after a refusal."""
        report, _ = await to_thread.run_sync(self._seen, asked.id)
        if not report.retry.prompt:
            raise UsageError(f"{asked.id} was not refused: it is {report.state}")
        return report.retry.prompt

    async def withdraw(self, asked: WithdrawArguments) -> ToolAnswer:
        return await to_thread.run_sync(self._withdraw, asked)

    def _withdraw(self, asked: WithdrawArguments) -> ToolAnswer:
        with self._door.session(writes=True) as session:
            report = session.queue.load(asked.id)
            if report is None:
                raise UsageError(f"there is no verdict on {asked.id}", "see `status`")
            right = token_of(session.queue_root, report.source.sha256)
            if not hmac.compare_digest(asked.token.encode(), right.encode()):
                raise UsageError(
                    f"the token is not that of {asked.id}", "give the one that `submit` returned"
                )
            begun = deciding.begun(session, Discard(asked.id))
        return _told(begun().report)  # others need not wait for the worker


def _without_model(session: Session) -> Session:
    """An oracle answers at once: others wait behind it."""
    config = session.config
    if not config.llm.model:
        return session
    return replace(session, config=replace(config, llm=replace(config.llm, correct=False)))


def _told(
    report: Report, text: str | None = None, *, note: str = "", refuses: bool = True
) -> ToolAnswer:
    """The report in a tool's words; a refusal comes with its page, from which a model corrects
    itself."""
    refused = refuses and report.state == "rejected"
    if refused:
        text = to_markdown(report)
    elif text is None:
        warnings = [f"  {p.code}: {p.message}" for p in report.problems]
        text = "\n".join([output.line(report), *warnings])
    return ToolAnswer(_value(report, note), text + (f"\nNote: {note}" if note else ""), refused)


def _value(report: Report, note: str) -> VerdictAnswer:
    problems, edits = report.problems, report.edits
    value = {
        "id": report.id,
        "state": report.state,
        "problems": [_problem(problem) for problem in problems[:_MOST_PROBLEMS]],
        "edits": [_edit(edit) for edit in edits[:_MOST_EDITS]],
        "left_out": len(problems[_MOST_PROBLEMS:]) + len(edits[_MOST_EDITS:]) or None,
        "base": report.base.commit if report.base else None,
        "note": note or None,
        **{key: getattr(report, key) for key in ("target", "branch", "commit", "duplicate_of")},
    }
    return cast(VerdictAnswer, _told_of(value))


def _problem(problem: ProblemEntry) -> ProblemAnswer:
    other = problem.conflicts_with
    kept = ("code", "severity", "message", "hint", "edit", "path", "line")
    value = {key: getattr(problem, key) for key in kept}
    value["conflicts_with"] = _told_of(plain(other)) if other else None
    return cast(ProblemAnswer, _told_of(value))


def _edit(edit: EditOutcome) -> EditAnswer:
    kept = ("id", "path", "state", "match", "lines")
    return cast(EditAnswer, _told_of({key: getattr(edit, key) for key in kept}))


def _listed(report: Report) -> BatchAnswer:
    paths = list(dict.fromkeys(edit.path for edit in report.edits))
    why = report.problems[-1:] if report.state in STOPPED else ()
    value = {
        "paths": paths[:_MOST_PATHS],
        "why": next((f"{one.code}: {one.message}" for one in why), None),
        **{key: getattr(report, key) for key in ("id", "state", "agent", "target")},
    }
    return cast(BatchAnswer, _told_of(value))


def _told_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """What there is to say; null says nothing."""
    return {key: item for key, item in value.items() if item is not None}


def _waiting(seen: Mapping[str, Any]) -> BatchAnswer:
    others = ", ".join(dict.fromkeys(one["batch"] for one in seen["collides"]))
    why = seen["needs_retry"] or (f"collides with {others}" if others else seen["note"]) or None
    value = {
        "paths": seen["paths"][:_MOST_PATHS],
        "why": why,
        **{key: seen[key] for key in ("id", "state", "agent", "target")},
    }
    return cast(BatchAnswer, _told_of(value))


def _finished(queue: QueueEngine, state: str | None, agent: str | None) -> Iterator[BatchAnswer]:
    """The finished batches of that state, the newest verdict first."""
    for id in islice(queue.newest(), _MOST_LOOKED_AT):
        report = queue.load(id)
        if report and report.state == state and agent in (None, report.agent):
            yield _listed(report)
