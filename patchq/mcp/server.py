"""Server of the tools, in all eras of the protocol: the SDK's own, which calls them by their types.

patchq://status             the state of the queue, as JSON
patchq://reports/ID         a change's report, as a page
patchq://formats/NAME       the instructions of a form
"""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.server.mcpserver.tools import Tool
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from patchq import __version__
from patchq.core.formats.registry import FORMATS
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import CRASHED, Fault, UsageError, fault_of
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
_ROOTS_SECONDS = 5.0
_LOOK_SECONDS = 0.25
_MOST_CALLS = 256
_ENVELOPE_BYTES = 64 << 10
_WRITES = ("submit", "withdraw")


def opened(args: Namespace) -> tuple[Server, int]:
    """Return the server, and the most bytes of a message to it."""
    lazy = args.http is None  # a client shows no word of a server that ends
    door = SharedGate(args.options, lazy=lazy)
    args.opened.callback(door.close)
    placed = bool(args.directories) or args.http is not None
    tools = Tools(door, args.agent)
    server = Server(tools, door, placed=placed, read_only=args.read_only)
    # The text of a response may be twice as long in JSON.
    return server, 2 * door.response_bytes + _ENVELOPE_BYTES


class Server(MCPServer):
    """Server of the tools; with `placed` the repository is that of `door`."""

    def __init__(
        self, queue: Tools, door: SharedGate, *, placed: bool = True, read_only: bool = False
    ) -> None:
        self.queue, self._door, self._placed = queue, door, placed
        self._bus = InMemorySubscriptionBus()
        self._under_way = 0
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

    async def answered(self) -> None:
        """Wait until no call of a tool is under way."""
        while self._under_way:
            await anyio.sleep(_LOOK_SECONDS / 10)

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

    async def _enter(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer the request, and count it meanwhile if it calls a tool."""
        calls = ctx.method == "tools/call"
        self._under_way += calls
        try:
            await self._place(ctx)
            return await call_next(ctx)
        finally:
            self._under_way -= calls

    async def _place(self, ctx: Any) -> None:
        """Enter the repository of the client's roots, else of the working directory."""
        if not self._placed and ctx.method in ("tools/call", "resources/read", "prompts/get"):
            roots = list[Path]()
            wanted = types.ClientCapabilities(roots=types.RootsCapability())
            if ctx.session.check_client_capability(wanted):
                request = types.ListRootsRequest()
                with anyio.move_on_after(_ROOTS_SECONDS), suppress(MCPError, ValidationError):
                    found = await ctx.session.send_request(request, types.ListRootsResult)
                    roots = [Path(unquote(urlsplit(str(one.uri)).path)) for one in found.roots]
            await to_thread.run_sync(self.queue.enter, roots)
            self._placed = self.queue.missing is None

    @asynccontextmanager
    async def _running(self, _: object) -> AsyncIterator[dict[str, Any]]:
        to_thread.current_default_thread_limiter().total_tokens = _MOST_CALLS
        async with anyio.create_task_group() as group:
            group.start_soon(self._publish)
            try:
                yield {}
            finally:
                self.queue.stop.set()
                group.cancel_scope.cancel()

    async def _publish(self) -> None:
        while self._door.root is None:
            await anyio.sleep(_LOOK_SECONDS)
        with closing(Watcher(self._door.root)) as watcher:
            while True:
                for id in dict.fromkeys(event["batch"] for event in watcher.read()):
                    await self._bus.publish(ResourceUpdated(uri=REPORT + id))
                    await self._bus.publish(ResourceUpdated(uri=STATUS))
                with anyio.move_on_after(_LOOK_SECONDS):
                    await anyio.wait_readable(watcher)
                watcher.wait(0.0)


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
