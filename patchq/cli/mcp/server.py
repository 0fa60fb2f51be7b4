"""The tools over the Model Context Protocol, in both of its eras: with a handshake, and without."""

from __future__ import annotations

import json
import logging
from argparse import Namespace
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from patchq import __version__
from patchq.cli.mcp.arguments import ProblemAnswer, VerdictAnswer
from patchq.cli.mcp.definitions import DEFINITIONS, INSTRUCTIONS, Definition
from patchq.cli.mcp.door import Door
from patchq.cli.mcp.tools import ToolAnswer, Tools
from patchq.model.errors import Fault, disk_fault
from patchq.report.document import printed
from patchq.text.quote import visible

_LOG = logging.getLogger("patchq")


def run(args: Namespace) -> int:
    """Serve until the client, or a signal, ends it."""
    door = Door(args)
    args.opened.callback(door.close)
    tools = Tools(door, args.agent)
    server = make(tools, args.read_only)
    if args.http is None:
        anyio.run(_by_stdio, server)
        return 0
    from patchq.cli.mcp import http  # what stdio has no use for

    return http.serve(args, server, tools, door.response_bytes)


async def _by_stdio(server: Server) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def make(tools: Tools, read_only: bool = False) -> Server:
    """The protocol's server for these tools."""
    offered = {one.name: one for one in DEFINITIONS if one.reads or not read_only}

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(one) for one in offered.values()])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        definition = offered.get(params.name)
        if definition is None:
            names = ", ".join(offered)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; see {names}")
        return _result(await _answer(definition, tools, params.arguments or {}))

    return Server(
        "patchq",
        version=__version__,
        title="patchq",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def described(one: Definition) -> types.Tool:
    """The tool as clients see it."""
    return types.Tool(
        name=one.name,
        title=one.title,
        description=one.description,
        input_schema=dict(one.input_schema()),
        output_schema=dict(one.output_schema()),
        annotations=types.ToolAnnotations(
            read_only_hint=one.reads,
            destructive_hint=one.destroys,
            idempotent_hint=one.repeats,
            open_world_hint=False,
        ),
    )


async def _answer(definition: Definition, tools: Tools, given: dict[str, Any]) -> ToolAnswer:
    """The tool's answer; whatever goes wrong is one, too, so that a model reads it."""
    try:
        return await definition.call(tools, definition.parse(given))
    except Fault as fault:
        return _failure(definition, fault)
    except Exception as error:
        if isinstance(error, OSError) and (broken := disk_fault(error)):
            return _failure(definition, broken)
        _LOG.exception("%s failed", definition.name)
        crash = Fault(f"{type(error).__name__}: {error}", "this is a defect of patchq; see its log")
        crash.code = "fault.crashed"
        return _failure(definition, crash)


def _failure(definition: Definition, fault: Fault) -> ToolAnswer:
    lines = [f"{fault.code}: {fault.message}", *([fault.hint] if fault.hint else [])]
    text = visible("\n".join(lines), keep="\n")
    if definition.gives is not VerdictAnswer:
        return ToolAnswer({}, text, refused=True)
    problem: ProblemAnswer = {
        "code": fault.code,
        "severity": "error",
        "message": fault.message,
        "hint": fault.hint,
        "edit": None,
        "path": None,
        "line": None,
        "conflicts_with": None,
    }
    return ToolAnswer({"id": None, "state": "error", "problems": [problem]}, text, refused=True)


def _result(answer: ToolAnswer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text)],
        structured_content=json.loads(printed(answer.value)) if answer.value else None,
        is_error=answer.refused,
    )
