"""Requests to the page and their answers: views and decisions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from msgspec import convert
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from patchq.core.model.values import Problem
from patchq.gate.api import Gate
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import CRASHED, UsageError, fault_of
from patchq.gate.review.errands import can_take_back
from patchq.page import decisions, diff, live, views
from patchq.page.decisions import DraftPlace, Form
from patchq.page.diff import VIEWED
from patchq.page.shown import Shown, rendered

_LOG = logging.getLogger("patchq")
_HERE = Path(__file__).parent
_DONE = {
    "accept": "Accepted", "discard": "Discarded", "send-back": "Sent back",
    "take-back": "Taken back:", "discuss": "Noted on",
}  # fmt: skip
_UNDOABLE = ("accept", "discard", "send-back")
View = Callable[[Gate, Form], Shown]
Work = Callable[[Request, Form], Response]


def make(looking: SharedGate, deciding: SharedGate, news: live.News) -> Starlette:
    """Return the application; views never wait for decisions."""
    answers = _Answers(looking, deciding)

    def route(path: str, work: Work, method: str = "GET") -> Route:
        async def answer(request: Request) -> Response:
            form = await _form(request) if method == "POST" else request.query_params
            return await run_in_threadpool(_safely, work, request, form)

        return Route(path, answer, methods=[method])

    async def changes(request: Request) -> Response:
        asked = request.query_params
        events = news.events(asked.get("since", ""), asked.get("id", ""))
        return StreamingResponse(events, media_type="text/event-stream")

    return Starlette(
        routes=[
            route("/", answers.page(views.inbox)),
            route("/history", answers.page(views.history)),
            route("/statistics", answers.page(views.statistics)),
            route("/conflicts", answers.page(views.conflicts)),
            route("/help", answers.page(lambda gate, asked: Shown("help.html", "Help", {}))),
            Route("/changes", changes),
            route("/blob/{oid}", answers.picture),
            route("/several", answers.page(views.several)),
            route("/several", answers.decide, "POST"),
            route("/batch/{id}", answers.page(views.change)),
            route("/batch/{id}/file", answers.page(views.one_file)),
            route("/batch/{id}/viewed", answers.mark_viewed, "POST"),
            route("/batch/{id}/draft", answers.keep_draft, "POST"),
            route("/batch/{id}/{deed}", answers.decide, "POST"),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ],
        exception_handlers={404: _missing, 405: _missing, ClientDisconnect: _gone},
    )


class _Answers:
    def __init__(self, looking: SharedGate, deciding: SharedGate) -> None:
        self._looking, self._deciding = looking, deciding

    def page(self, view: View, status: int = 200) -> Work:
        def answer(request: Request, form: Form) -> Response:
            part = {"part": "1"} if "x-part" in request.headers else {}
            asked = Form([*form.multi_items(), *request.path_params.items(), *part.items()])
            with self._looking.gate() as gate:
                # From before: what changes while the page is made is noticed.
                version = live.version(gate)
                shown = view(gate, asked)
                if part and "part" in shown.values:
                    return HTMLResponse(shown.values["part"])
                return _html(shown, request, version, status)

        return answer

    def decide(self, request: Request, form: Form) -> Response:
        """Carry out what a form asks for: of one change on its page, or of the chosen ones."""
        id, deed = request.path_params.get("id"), request.path_params.get("deed")
        deed = deed or form.get("deed", "")
        parts = [f"{id} {form.get('commit', '')}"] if id else form.getlist("chosen")
        seen = {one: commit for one, _, commit in (part.partition(" ") for part in parts)}
        with self._looking.gate() as gate:
            after = views.neighbours(gate, id)[1] if id else None
        with self._deciding.gate(writes=True) as gate:
            made, problems = decisions.decide(gate, deed, seen, form)
            if id and deed in _UNDOABLE and not problems:
                decisions.clear_drafts(gate, id)
        reports = [one.report for one in made]
        undo = [one.id for one in reports if deed in _UNDOABLE and can_take_back(one)]
        if problems or deed == "choose":
            choice = None if problems else made[0]
            view = partial(views.change, choice=choice) if id else partial(views.several, undo=undo)
            again = partial(view, problems=problems)
            return self.page(again, 409 if problems else 200)(request, form)
        stays = deed == "discuss" or (not id and len(made) == 1)
        where = f"/batch/{reports[0].id if stays else after}" if stays or after else "/"
        about = reports[0].id if len(made) == 1 else f"{len(made)} changes"
        asked = urlencode({"done": f"{_DONE[deed]} {about}", "undo": undo}, doseq=True)
        return RedirectResponse(f"{where}?{asked}", 303)

    def mark_viewed(self, request: Request, form: Form) -> Response:
        with self._deciding.gate() as gate:
            gate.marks(VIEWED).keep(form.get("key", ""), form.get("viewed", ""))
        return RedirectResponse(f"/batch/{request.path_params['id']}", 303)

    def keep_draft(self, request: Request, form: Form) -> Response:
        with self._deciding.gate() as gate:
            place = convert(dict(form), DraftPlace)
            decisions.keep_draft(gate, request.path_params["id"], place, form.get("words", ""))
        return Response(status_code=204)

    def picture(self, request: Request, form: Form) -> Response:
        with self._looking.gate() as gate:
            data, type = diff.picture(gate, request.path_params["oid"], form.get("as", ""))
        return Response(
            data, media_type=type, headers={"content-security-policy": diff.PICTURE_POLICY}
        )


async def _form(request: Request) -> Form:
    form = await request.form(max_files=0, max_fields=5000, max_part_size=1 << 20)
    return Form(
        [
            (name, value.replace("\r\n", "\n"))
            for name, value in form.multi_items()
            if isinstance(value, str)
        ]
    )


def _html(shown: Shown, request: Request, version: str, code: int = 200) -> Response:
    return HTMLResponse(rendered(shown, request.url.path, version, request.query_params), code)


def _safely(work: Work, request: Request, form: Form) -> Response:
    try:
        return work(request, form)
    except Exception as error:
        fault = fault_of(error, "this is a defect of patchq")
        if fault.code == CRASHED:
            _LOG.error("the page %s failed", request.url.path, exc_info=error)
    status = 404 if isinstance(fault, UsageError) else 500 if fault.code == CRASHED else 503
    return _failed(request, decisions.problem(fault), status)


async def _missing(request: Request, error: Exception) -> Response:
    problem = Problem("usage", "there is no such page", "go to the inbox")
    return _failed(request, problem, getattr(error, "status_code", 404))


async def _gone(request: Request, error: Exception) -> Response:
    """Return an empty answer: the browser left before it had sent its form."""
    return Response(status_code=400)


def _failed(request: Request, problem: Problem, status: int) -> Response:
    return _html(Shown("frame.html", "Not possible", {"problems": [problem]}), request, "", status)
