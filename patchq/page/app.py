"""Requests and their answers: what is looked at, and what is decided."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from patchq.gate.api import Gate
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import Fault, UsageError, disk_fault
from patchq.page import batch, conflicts, decisions, history, inbox, live, pictures, statistics
from patchq.page.decisions import Fields
from patchq.page.shown import Shown, rendered

_LOG = logging.getLogger("patchq")
_HERE = Path(__file__).parent
_DONE = {"accept": "Accepted", "accept-stack": "Accepted", "discard": "Discarded"} | {
    "send-back": "Sent back", "take-back": "Taken back:", "discuss": "Noted on",
}  # fmt: skip
_STAYS = ("take-back", "discuss")  # what leads to no other change
_PLACE = ("path", "side", "from", "line", "thread")
View = Callable[[Gate, Mapping[str, str]], Shown]
Work = Callable[[Request, Fields], Response]


def make(looking: SharedGate, deciding: SharedGate, news: live.News) -> Starlette:
    """The application; who looks never waits for who decides."""
    answers = _Answers(looking, deciding)

    def route(path: str, work: Work, method: str = "GET") -> Route:
        async def answer(request: Request) -> Response:
            fields = await _fields(request) if request.method == "POST" else []
            return await run_in_threadpool(_safely, work, request, fields)

        return Route(path, answer, methods=[method])

    async def changes(request: Request) -> Response:
        asked = request.query_params
        return news.stream(asked.get("since", ""), asked.get("id", ""))

    return Starlette(
        routes=[
            route("/", answers.page(inbox.view)),
            route("/history", answers.page(history.view)),
            route("/statistics", answers.page(statistics.view)),
            route("/conflicts", answers.page(conflicts.view)),
            route("/help", answers.page(lambda gate, asked: Shown("help.html", "Help", {}))),
            Route("/changes", changes),
            route("/blob/{oid}", answers.picture),
            route("/several", answers.chosen),
            route("/several", answers.decide_several, "POST"),
            route("/batch/{id}", answers.page(batch.view)),
            route("/batch/{id}/file", answers.page(batch.view_file)),
            route("/batch/{id}/viewed", answers.mark_viewed, "POST"),
            route("/batch/{id}/draft", answers.keep_draft, "POST"),
            route("/batch/{id}/{deed}", answers.decide, "POST"),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ],
        lifespan=news.running,
        exception_handlers={404: _missing, 405: _missing},
    )


class _Answers:
    """The answers to requests, by two gates: one to look, one to decide."""

    def __init__(self, looking: SharedGate, deciding: SharedGate) -> None:
        self._looking, self._deciding = looking, deciding

    def page(self, view: View) -> Work:
        """Return what answers with a page, or with a part of it where that is asked for."""

        def answer(request: Request, _: Fields) -> Response:
            with self._looking.gate() as gate:
                # From before: what changes while the page is made is noticed.
                version = live.version(gate)
                part = {"part": "1"} if "x-part" in request.headers else {}
                shown = view(gate, {**request.query_params, **request.path_params, **part})
                if part and "part" in shown.values:
                    return HTMLResponse(shown.values["part"])
                return _html(shown, request, version)

        return answer

    def decide(self, request: Request, fields: Fields) -> Response:
        """Decide on one change, and go to the next one of the inbox."""
        id, deed = request.path_params["id"], request.path_params["deed"]
        with self._deciding.gate(writes=True) as gate:
            result = decisions.take(gate, id, deed, fields)
        with self._looking.gate() as gate:
            if result is not None:
                version = live.version(gate)
                shown = batch.view(gate, {"id": id}, result)
                return _html(shown, request, version, 409 if result.problems else 200)
            if deed not in _STAYS:
                gate.marks(batch.DRAFT).clear(id)
            after = id if deed in _STAYS else inbox.neighbours(gate, id)[1]
        done = {"done": f"{_DONE.get(deed, deed)} {id}"}
        done |= {"undo": id} if deed in ("send-back", "discard") else {}
        where = f"/batch/{after}" if after else "/"
        return RedirectResponse(f"{where}?{urlencode(done)}", 303)

    def chosen(self, request: Request, _: Fields) -> Response:
        """Return the page on which a decision on several is confirmed."""
        asked = request.query_params.multi_items()
        return self.page(lambda gate, _: inbox.several(gate, asked))(request, [])

    def decide_several(self, request: Request, fields: Fields) -> Response:
        """Decide on the chosen changes alike."""
        deed = next((value for name, value in fields if name == "deed"), "")
        with self._deciding.gate(writes=True) as gate:
            result = decisions.decide_each(gate, deed, fields)
        if result is None:
            many = sum(name == "chosen" for name, _ in fields)
            done = urlencode({"done": f"{_DONE.get(deed, deed)} {many} changes"})
            return RedirectResponse(f"/?{done}", 303)
        with self._looking.gate() as gate:
            return _html(inbox.several(gate, fields, result), request, live.version(gate), 409)

    def mark_viewed(self, request: Request, fields: Fields) -> Response:
        """Keep that a person has viewed a file as it is, or has not."""
        form = dict(fields)
        with self._deciding.gate() as gate:
            key = batch.viewed_key(form.get("path", ""), form.get("content", ""))
            gate.marks(batch.VIEWED).put(key, form.get("viewed", ""))
        return RedirectResponse(f"/batch/{request.path_params['id']}", 303)

    def keep_draft(self, request: Request, fields: Fields) -> Response:
        """Keep the words of a comment or a reply that is not sent yet."""
        form = dict(fields)
        place = decisions.place_of(*(form.get(name, "") for name in _PLACE))
        with self._deciding.gate() as gate:
            gate.marks(batch.DRAFT).put(place, form.get("words", ""), request.path_params["id"])
        return Response(status_code=204)

    def picture(self, request: Request, _: Fields) -> Response:
        """Return a picture of a change, which runs nothing."""
        with self._looking.gate() as gate:
            kind = request.query_params.get("as", "")
            data, type = pictures.content(gate, request.path_params["oid"], kind)
        return Response(data, media_type=type, headers={"content-security-policy": pictures.POLICY})


async def _fields(request: Request) -> Fields:
    form = await request.form(max_files=0, max_fields=5000, max_part_size=1 << 20)
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _html(shown: Shown, request: Request, version: str, code: int = 200) -> Response:
    return HTMLResponse(rendered(shown, request.url.path, version, request.query_params), code)


def _safely(work: Work, request: Request, fields: Fields) -> Response:
    """Return the answer, or the page on a fault; a defect of patchq is written to the log."""
    try:
        return work(request, fields)
    except Exception as failure:
        error = (disk_fault(failure) or failure) if isinstance(failure, OSError) else failure
    if isinstance(error, Fault):
        code = 404 if isinstance(error, UsageError) else 503
        return _problem(request, error.code, error.message, error.hint, code)
    _LOG.error("the page %s failed", request.url.path, exc_info=error)
    message = f"{type(error).__name__}: {error}"
    return _problem(request, "fault.crashed", message, "this is a defect of patchq", 500)


async def _missing(request: Request, error: Exception) -> Response:
    code = getattr(error, "status_code", 404)
    return _problem(request, "usage", "there is no such page", "go to the inbox", code)


def _problem(request: Request, code: str, message: str, hint: str | None, status: int) -> Response:
    problem = {"code": code, "message": message, "hint": hint}
    return _html(Shown("failed.html", "Not possible", {"problems": [problem]}), request, "", status)
