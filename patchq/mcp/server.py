"""The tools over the Model Context Protocol, in both of its eras: with a handshake, and without."""

from __future__ import annotations

import json
import logging
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from patchq import __version__
from patchq.cli.door import Door
from patchq.core.formats.registry import FORMATS
from patchq.core.text.quote import visible
from patchq.gate.errors import Fault, UsageError, disk_fault
from patchq.gate.report.document import printed
from patchq.gate.service import admission
from patchq.mcp import arguments, resources
from patchq.mcp.arguments import ProblemAnswer, VerdictAnswer
from patchq.mcp.definitions import DEFINITIONS, INSTRUCTIONS, Definition
from patchq.mcp.tools import ToolAnswer, Tools
from patchq.mcp.updates import Updates

_LOG = logging.getLogger("patchq")


def run(args: Namespace) -> int:
    """Serve until the client, or a signal, ends it."""
    door = Door(args)
    args.opened.callback(door.close)
    tools = Tools(door, args.agent)
    server = make(tools, Updates(door), args.read_only)
    limit = admission.message_bytes(door.response_bytes)
    if args.http is None:
        from patchq.mcp import stdio

        return stdio.serve(server, tools, limit)
    from patchq.mcp import http  # what stdio has no use for

    return http.serve(args, server, tools, limit)


def make(tools: Tools, updates: Updates, read_only: bool = False) -> Server:
    """The protocol's server for these tools."""
    offered = {one.name: one for one in DEFINITIONS if one.reads or not read_only}

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(one) for one in offered.values()])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        definition = offered.get(params.name)
        if definition is None:
            names = ", ".join(offered)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; see {names}")
        return _result(await _answer(definition, tools, params.arguments or {}))

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=_resources())

    async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=_templates())

    async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
        uri = str(params.uri)
        with _refusing():
            text, kind = await resources.read(tools, uri)
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=_prompts())

    async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
        with _refusing():
            text = await resources.prompt(tools, params.name, params.arguments or {})
        content = types.TextContent(text=text)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    return Server(
        "patchq",
        version=__version__,
        title="patchq",
        instructions=INSTRUCTIONS,
        lifespan=updates.running,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=updates.subscribe,
        on_unsubscribe_resource=updates.unsubscribe,
        on_subscriptions_listen=updates.listen,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


@contextmanager
def _refusing() -> Iterator[None]:
    """What is wrong with what a client asks for, as the protocol says it."""
    try:
        yield
    except Fault as fault:
        code = types.INVALID_PARAMS if isinstance(fault, UsageError) else types.INTERNAL_ERROR
        raise MCPError(code, _said(fault)) from None


def _resources() -> list[types.Resource]:
    named = [(resources.STATUS, "status", "How the queue stands", "application/json")]
    for name in FORMATS:
        named.append((resources.FORMAT + name, name, "How to write this form", "text/plain"))
    return [
        types.Resource(uri=uri, name=name, description=what, mime_type=kind)
        for uri, name, what, kind in named
    ]


def _templates() -> list[types.ResourceTemplate]:
    return [
        types.ResourceTemplate(
            uri_template=resources.REPORT + "{id}",
            name="report",
            description="The report on a batch",
            mime_type="text/markdown",
        ),
        types.ResourceTemplate(
            uri_template=resources.FORMAT + "{name}",
            name="format",
            description="How to write a form",
            mime_type="text/plain",
        ),
    ]


def _prompts() -> list[types.Prompt]:
    return [
        types.Prompt(
            name=one.name,
            description=one.description,
            arguments=[
                types.PromptArgument(name=name, description=what, required=n == 0)
                for n, (name, what) in enumerate(one.arguments.items())
            ],
        )
        for one in resources.PROMPTS
    ]


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
        asked = arguments.parsed(definition.takes, given, definition.name)
        return await definition.call(tools, asked)
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
    text = _said(fault)
    if definition.gives is not VerdictAnswer:
        return ToolAnswer({}, text, refused=True)
    problem: ProblemAnswer = {"code": fault.code, "severity": "error", "message": fault.message}
    if fault.hint:
        problem["hint"] = fault.hint
    return ToolAnswer({"state": "error", "problems": [problem]}, text, refused=True)


def _said(fault: Fault) -> str:
    lines = [f"{fault.code}: {fault.message}", *([fault.hint] if fault.hint else [])]
    return visible("\n".join(lines), keep="\n")


def _result(answer: ToolAnswer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text)],
        structured_content=json.loads(printed(answer.value)) if answer.value else None,
        is_error=answer.refused,
    )
