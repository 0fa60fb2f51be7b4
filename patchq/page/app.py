"""Requests and their answers: what is looked at, and what is decided."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
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
from patchq.page.shown import Shown, rendered

_LOG = logging.getLogger("patchq")
_HERE = Path(__file__).parent
_DONE = {"accept": "Accepted", "accept-stack": "Accepted", "discard": "Discarded"} | {
    "send-back": "Sent back"
}
View = Callable[[Gate, Mapping[str, str]], Shown]
Answer = Callable[[Request], Awaitable[Response]]


def make(looking: SharedGate, deciding: SharedGate, news: live.News) -> Starlette:
    """The application; who looks never waits for who decides."""

    def page(view: View) -> Answer:
        async def answer(request: Request) -> Response:
            return await run_in_threadpool(_look, looking, view, request)

        return answer

    async def decide(request: Request) -> Response:
        fields = await _fields(request)
        return await run_in_threadpool(_decide, looking, deciding, request, fields)

    async def mark(request: Request) -> Response:
        fields = dict(await _fields(request))
        return await run_in_threadpool(_mark, deciding, request, fields)

    async def blob(request: Request) -> Response:
        return await run_in_threadpool(_picture, looking, request)

    async def several(request: Request) -> Response:
        if request.method == "POST":
            fields = await _fields(request)
            return await run_in_threadpool(_several, looking, deciding, request, fields)
        asked = request.query_params.multi_items()
        view = partial(_confirmed, asked)
        return await run_in_threadpool(_look, looking, view, request)

    async def changes(request: Request) -> Response:
        return news.stream(request.query_params.get("since", ""))

    return Starlette(
        routes=[
            Route("/", page(inbox.view)),
            Route("/history", page(history.view)),
            Route("/statistics", page(statistics.view)),
            Route("/conflicts", page(conflicts.view)),
            Route("/help", page(lambda gate, asked: Shown("help.html", "Help", {}))),
            Route("/changes", changes),
            Route("/blob/{oid}", blob),
            Route("/several", several, methods=["GET", "POST"]),
            Route("/batch/{id}", page(batch.view)),
            Route("/batch/{id}/file", page(batch.view_file)),
            Route("/batch/{id}/viewed", mark, methods=["POST"]),
            Route("/batch/{id}/draft", mark, methods=["POST"]),
            Route("/batch/{id}/{deed}", decide, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ],
        lifespan=news.running,
        exception_handlers={404: _missing, 405: _missing},
    )


def _look(door: SharedGate, view: View, request: Request) -> Response:
    try:
        with door.gate() as gate:
            # From before: what changes while the page is made is noticed.
            version = live.version(gate.watched)
            part = {"part": "1"} if "x-part" in request.headers else {}
            shown = view(gate, {**request.query_params, **request.path_params, **part})
            if part and "part" in shown.values:
                return HTMLResponse(shown.values["part"])
            return _html(shown, request, version)
    except Exception as error:
        return _failed(error, request)


def _decide(
    looking: SharedGate, deciding: SharedGate, request: Request, fields: list[tuple[str, str]]
) -> Response:
    id, deed = request.path_params["id"], request.path_params["deed"]
    try:
        with deciding.gate(writes=True) as gate:
            result = decisions.take(gate, id, deed, fields)
        with looking.gate() as gate:
            if result is None:
                gate.marks(batch.DRAFT).clear(id)
                _, after = inbox.neighbours(gate, id)
                done = urlencode({"done": f"{_DONE.get(deed, deed)} {id}"})
                return RedirectResponse(f"/batch/{after}?{done}" if after else f"/?{done}", 303)
            version = live.version(gate.watched)
            shown = batch.view(gate, {"id": id}, result)
            return _html(shown, request, version, 409 if result.problems else 200)
    except Exception as error:
        return _failed(error, request)


def _mark(door: SharedGate, request: Request, fields: dict[str, str]) -> Response:
    """Keep what a person has viewed, or the draft of a comment."""
    id, kind = request.path_params["id"], request.url.path.rpartition("/")[2]
    try:
        with door.gate() as gate:
            if kind == batch.VIEWED:
                marks = gate.marks(batch.VIEWED)
                marks.put(fields.get("path", ""), fields.get("content", ""))
                return RedirectResponse(f"/batch/{id}", 303)
            place = {name: fields.get(name, "") for name in ("path", "side", "from", "line")}
            gate.marks(batch.DRAFT).put(json.dumps(place), fields.get("words", ""), id)
            return Response(status_code=204)
    except Exception as error:
        return _failed(error, request)


def _picture(door: SharedGate, request: Request) -> Response:
    try:
        with door.gate() as gate:
            kind = request.query_params.get("as", "")
            data, type = pictures.content(gate, request.path_params["oid"], kind)
        return Response(data, media_type=type, headers={"content-security-policy": pictures.POLICY})
    except Exception as error:
        return _failed(error, request)


def _confirmed(asked: list[tuple[str, str]], gate: Gate, _: Mapping[str, str]) -> Shown:
    return inbox.several(gate, asked)


def _several(
    looking: SharedGate, deciding: SharedGate, request: Request, fields: list[tuple[str, str]]
) -> Response:
    deed = next((value for name, value in fields if name == "deed"), "")
    try:
        with deciding.gate(writes=True) as gate:
            result = decisions.decide_each(gate, deed, fields)
        if result is None:
            many = sum(name == "chosen" for name, _ in fields)
            done = urlencode({"done": f"{_DONE.get(deed, deed)} {many} changes"})
            return RedirectResponse(f"/?{done}", 303)
        with looking.gate() as gate:
            version = live.version(gate.watched)
            return _html(inbox.several(gate, fields, result), request, version, 409)
    except Exception as error:
        return _failed(error, request)


async def _fields(request: Request) -> list[tuple[str, str]]:
    form = await request.form(max_files=0, max_fields=5000, max_part_size=1 << 20)
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _html(shown: Shown, request: Request, version: str, code: int = 200) -> Response:
    done, view = (request.query_params.get(name, "") for name in ("done", "view"))
    page = rendered(shown, request.url.path, version, done, view)
    return HTMLResponse(page, code)


def _failed(error: Exception, request: Request) -> Response:
    """Return the page on a fault; a defect of patchq is written to the log."""
    if isinstance(error, OSError):
        error = disk_fault(error) or error
    if isinstance(error, Fault):
        code = 404 if isinstance(error, UsageError) else 503
        problem = {"code": error.code, "message": error.message, "hint": error.hint}
    else:
        _LOG.exception("the page %s failed", request.url.path)
        code = 500
        message = f"{type(error).__name__}: {error}"
        problem = {
            "code": "fault.crashed",
            "message": message,
            "hint": "this is a defect of patchq",
        }
    shown = Shown("failed.html", "Not possible", {"problem": problem})
    return HTMLResponse(rendered(shown, request.url.path, ""), code)


async def _missing(request: Request, error: Exception) -> Response:
    problem = {"code": "usage", "message": "there is no such page", "hint": "go to the inbox"}
    shown = Shown("failed.html", "Not found", {"problem": problem})
    return HTMLResponse(rendered(shown, request.url.path, ""), getattr(error, "status_code", 404))
