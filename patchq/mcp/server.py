"""Server of the tools, in all eras of the protocol: the SDK's own, which calls them by their types.

patchq://status             the state of the queue, as JSON
patchq://reports/ID         a change's report, as a page
patchq://formats/NAME       the instructions of a form

HTTP is for this machine only, and for those who have the token: whoever could reach it could drop
responses.  So it listens on the loopback address, takes no request for another host's name or from
another site's page, and asks for a bearer token.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
import secrets
import signal
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from patchq import __version__
from patchq.core.formats.registry import FORMATS
from patchq.gate.api.location import Options
from patchq.gate.api.shared import SharedGate
from patchq.gate.config.schema import Limits
from patchq.gate.errors import CRASHED, Fault, UsageError, fault_of
from patchq.gate.report import document
from patchq.gate.service.wake import Watcher
from patchq.mcp import answers
from patchq.mcp.tools import Tools

INSTRUCTIONS = """\
patchq turns edits into one reviewed commit, or refuses them and tells why; it applies all or none \
of them. Ask `how_to_answer` for the files with their base, or read them yourself and give the \
commit that you read as `base`. `check` tells at no cost what would become of your edits, and \
`submit` hands them in. A refusal holds the arguments to send instead: correct them, and `submit` \
again. `proposed` is a success: a person reviews it."""
STATUS, REPORT, FORMAT = "patchq://status", "patchq://reports/", "patchq://formats/"
_LOG = logging.getLogger("patchq")
_LOOK_SECONDS = 0.1
_ROOTS_SECONDS = 5.0
_MOST_CALLS = 256
_ENVELOPE_BYTES = 64 << 10
_WRITES = ("submit", "withdraw")
_ENDS_BYTES = 200
_VALUE = rb'(-?\d{1,18}|"[\w.:-]{1,100}")'
# A request's id at its start or its end, where SDKs write it.
_ID = re.compile(
    rb'\A\s*{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*%b\s*,|,\s*"id"\s*:\s*%b\s*}\s*\Z'
    % (_VALUE, _VALUE)
)


def serve(args: Namespace, options: Options) -> int:
    """Serve the tools until the client or a signal ends it."""
    door, is_local = SharedGate(options), args.http is None
    args.opened.callback(door.close)
    placed = bool(args.directories) or not is_local
    made = Server(Tools(door, args.agent), placed=placed, read_only=args.read_only)
    limits = Limits()
    # A client over stdio shows no word of a server that ends: each call says what is missing.
    with suppress(UsageError) if is_local else nullcontext(), door.gate() as gate:
        limits = gate.context().config.limits
    # The text of a response may be twice as long in JSON.
    most = 2 * limits.response_bytes + _ENVELOPE_BYTES
    if not is_local:
        return _serve_http(args, made, most)
    for end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(end, signal.SIG_DFL)  # else the thread that reads keeps it from its end
    source = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # a child never reads the client's words
    try:
        anyio.run(_serve_stdio, made, source, most)
    except* BrokenPipeError:  # the client is gone
        pass
    return 0


async def _serve_stdio(made: Server, source: BinaryIO, most: int) -> None:
    """Serve one client, with the lines of `source` bounded, as the SDK reads any."""

    async def lines() -> AsyncIterator[str]:
        begin = end = b""  # of a line that is too long
        while part := await to_thread.run_sync(source.readline, most):
            is_whole = part.endswith(b"\n") or len(part) < most
            if is_whole and not begin:
                yield part.decode("utf-8", "replace")
                continue
            begin, end = begin or part[:_ENDS_BYTES], (end + part)[-_ENDS_BYTES:]
            if is_whole:
                await write.send(SessionMessage(_refusal(begin + end, most)))
                begin = end = b""

    async with stdio_server(cast("Any", lines())) as (read, write):
        await made.serve(read, write)


def _refusal(ends: bytes, most: int) -> types.JSONRPCError:
    """Return the answer to a line above the limit, given its ends."""
    found = _ID.search(ends)
    why = f"the line is longer than {most} bytes, so it was not read; send less at once"
    return types.JSONRPCError(
        jsonrpc="2.0",
        id=json.loads(found[1] or found[2]) if found else None,
        error=types.ErrorData(code=types.INVALID_REQUEST, message=why),
    )


TOKEN = "PATCHQ_MCP_TOKEN"
_LEAST_TOKEN = 16  # characters; a shorter one could be guessed
PATH = "/mcp"


def _serve_http(args: Namespace, made: Server, most: int) -> int:
    """Listen until a signal ends it; what waits for a verdict then hears that there is none."""
    from mcp.server.transport_security import TransportSecuritySettings

    from patchq.gate.service import loopback  # stdio has no use for either

    given = os.environ.get(TOKEN, "")
    if 0 < len(given) < _LEAST_TOKEN:
        raise UsageError(f"{TOKEN} has fewer than {_LEAST_TOKEN} characters", "make it longer")
    token = given or secrets.token_urlsafe(32)
    with loopback.bound(loopback.port_of(args.http, "--http")) as own:
        port = own.getsockname()[1]
        app = made.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=most,
            transport_security=TransportSecuritySettings(
                allowed_hosts=[f"{name}:{port}" for name in loopback.NAMES],
                allowed_origins=[f"http://{name}:{port}" for name in loopback.NAMES],
            ),
        )
        listening = loopback.server(_guarded(app, token))
        made.queue.ending = lambda: listening.should_exit
        url = f"http://{loopback.HOST}:{port}{PATH}"
        answer = {"url": url} if given else {"url": url, "token": token}
        shown = f"patchq serves MCP at {url}" + ("" if given else f"\ntoken: {token}")
        print(document.printed(answer, indent=1) if args.json else shown, flush=True)
        loopback.listen(listening, own)
    return 0


def _guarded(app: Any, token: str) -> Any:
    """Return the application for those who bring the token."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        scheme, _, word = given.partition(b" ")
        is_right = hmac.compare_digest(scheme.lower() + b" " + word, f"bearer {token}".encode())
        if is_right or scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        body = b"the bearer token is missing or wrong: see what `patchq mcp --http` printed\n"
        await send({"type": "http.response.body", "body": body})

    return guard


class Server(MCPServer):
    """Server of the tools; with `placed` the repository is known, whatever a client's roots are."""

    def __init__(self, queue: Tools, *, placed: bool = True, read_only: bool = False) -> None:
        self.queue, self._placed = queue, placed
        self._bus = InMemorySubscriptionBus()
        methods = (
            queue.submit, queue.check, queue.report, queue.status, queue.wait,
            queue.how_to_answer, queue.withdraw,
        )  # fmt: skip
        super().__init__(
            "patchq",
            title="patchq",
            version=__version__,
            instructions=INSTRUCTIONS,
            tools=[_tool(one) for one in methods if not (read_only and one.__name__ in _WRITES)],
            lifespan=self._running,
            subscriptions=self._bus,
            middleware=[self._enter],
        )
        self._offer_texts()

    async def serve(self, read: Any, write: Any) -> None:
        """Serve one client that these streams reach."""
        options = self._lowlevel_server.create_initialization_options()
        await self._lowlevel_server.run(read, write, options)

    def _offer_texts(self) -> None:
        @self.resource(STATUS, mime_type="application/json", description="The state of the queue")
        def status() -> str:
            return _text(self.queue.listed)

        @self.resource(REPORT + "{id}", mime_type="text/markdown", description="A change's report")
        def report(id: str) -> str:
            return _text(partial(self.queue.report, id))

        for name, form in FORMATS.items():
            self.add_resource(
                FunctionResource(
                    uri=FORMAT + name,
                    name=name,
                    description="How to write this form",
                    mime_type="text/plain",
                    fn=partial(getattr, form, "instructions"),
                )
            )

        @self.prompt(description="Ask for edits of files: `files` are paths, with commas between")
        def edit(files: str, task: str = "") -> str:
            paths = [path for part in files.split(",") if (path := part.strip())]
            return _text(partial(self.queue.how_to_answer, paths, task))

        @self.prompt(description="Ask for a refused change again, with what was wrong with it")
        def retry(id: str) -> str:
            return _text(partial(self.queue.report, id))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Return the tool's answer; errors are answers too, for the model to read."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            fault = _fault(error, self._tool_manager.get_tool(name))
            return answers.result({}, answers.text_of(fault), refused=True)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Any = None
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Return the prompt; a wrong name or argument is the client's fault, and not logged."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None

    async def _enter(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer a request in the repository of the client's roots.

        Without one, the repository is that of the working directory.
        """
        if not self._placed and ctx.method in ("tools/call", "resources/read", "prompts/get"):
            roots = list[Path]()
            wanted = types.ClientCapabilities(roots=types.RootsCapability())
            if ctx.session.check_client_capability(wanted):
                request = types.ListRootsRequest()
                with anyio.move_on_after(_ROOTS_SECONDS), suppress(MCPError, ValidationError):
                    found = await ctx.session.send_request(request, types.ListRootsResult)
                    roots = [Path(unquote(urlsplit(str(one.uri)).path)) for one in found.roots]
            named = f"none of the client's roots ({', '.join(map(str, roots))}) is in one"
            missing = UsageError(
                f"the server's directory {Path.cwd()} is in no git repository, and "
                + (named if roots else "the client names no roots"),
                "open a repository in the client",
            )
            self._placed = await to_thread.run_sync(
                self.queue.door.enter, [*roots, Path.cwd()], missing
            )
        return await call_next(ctx)

    @asynccontextmanager
    async def _running(self, _: object) -> AsyncIterator[dict[str, Any]]:
        to_thread.current_default_thread_limiter().total_tokens = _MOST_CALLS
        async with anyio.create_task_group() as group:
            group.start_soon(self._publish)
            try:
                yield {}
            finally:
                self.queue.ending = lambda: True
                group.cancel_scope.cancel()

    async def _publish(self) -> None:
        while (root := self.queue.door.root) is None:
            await anyio.sleep(_LOOK_SECONDS)
        watcher = Watcher(root)
        while True:
            for id in dict.fromkeys(event["batch"] for event in watcher.read()):
                await self._bus.publish(ResourceUpdated(uri=REPORT + id))
                await self._bus.publish(ResourceUpdated(uri=STATUS))
            while not watcher.wait(0.0):
                await anyio.sleep(_LOOK_SECONDS)


def _tool(method: Any) -> Tool:
    name = method.__name__
    tool = Tool.from_function(
        method,
        description=" ".join((method.__doc__ or "").split()),
        annotations=types.ToolAnnotations(
            read_only_hint=name not in _WRITES,
            destructive_hint=name == "withdraw",
            idempotent_hint=name != "withdraw",
            open_world_hint=False,
        ),
    )
    takes = tool.fn_metadata.arg_model
    takes.model_config["extra"] = "forbid"
    takes.model_rebuild(force=True)
    tool.parameters = _untitled(takes.model_json_schema(by_alias=True))
    tool.fn_metadata.output_schema = _untitled(tool.fn_metadata.output_schema)
    return tool


def _untitled(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if isinstance(schema, dict):
        return {key: _untitled(value) for key, value in schema.items() if key != "title"}
    return schema


def _fault(failed: ToolError, tool: Tool | None) -> Fault:
    error = failed.__cause__
    if tool is None or not isinstance(error, Exception):
        return UsageError(str(failed))
    takes = tool.fn_metadata.arg_model
    if isinstance(error, ValidationError) and error.title == takes.__name__:
        return answers.usage_error(tool.name, takes.model_fields, error.errors(include_url=False))
    fault = fault_of(error, "this is a defect of patchq; see its log")
    if fault.code == CRASHED:
        _LOG.error("%s failed", tool.name, exc_info=error)
    return fault


def _text(ask: Callable[[], types.CallToolResult]) -> str:
    try:
        (part,) = ask().content
    except Fault as fault:
        raise MCPError(types.INVALID_PARAMS, answers.text_of(fault)) from None
    assert isinstance(part, types.TextContent)
    return part.text
