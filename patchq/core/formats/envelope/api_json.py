"""Reading of an API's own answer, as JSON or JSON Lines.

Four shapes are known, each by members that the others lack: `content` of an assistant's message
(Messages), `choices` (Chat Completions), `output` (Responses) and `candidates` (generateContent).
The model's words come out in its order: text, and calls of tools with their arguments.  What it
thought does not.

Nothing here judges a call; whether it edits is for the formats to say.  The API's stop reason is
the surest sign that an answer was cut, so every one that is no normal end is handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby

from msgspec import Struct

from patchq.core.formats.format import UnreadableEdit
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError, Node

_ENDS = frozenset(
    {
        "end_turn", "stop", "stop_sequence", "tool_use", "tool_calls", "function_call", "STOP",
        "completed",
    }
)  # fmt: skip
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_WRAPPERS = ("function", "functionCall", "function_call", "custom")
_NAMES = ("name", "tool", "tool_name")
_ARGUMENTS = ("arguments", "input", "args", "parameters", "tool_input")
_BESIDE = frozenset({"type", "id", "call_id", "index", "status", "caller", "thoughtSignature"})


class ApiText(Struct, frozen=True):
    """Text that the model wrote.

    `at` are its first and last line (1-based).
    """

    text: str
    at: tuple[int, int]


class ToolCall(Struct, frozen=True):
    """A tool call in an API's answer.

    `arguments` are an object where the API gives one, or a text that holds one (whose lines are
    then the text's own); anything else is left as it is.
    """

    name: str
    arguments: Node
    at: tuple[int, int]
    id: str | None = None
    cwd: str | None = None  # the directory that its relative paths are below
    certain: bool = True  # false if a stream that has results has none for this call


ApiPart = ApiText | ToolCall


class ApiAnswer(Struct, frozen=True):
    """Parts of an API's answer.

    `cut` is the stop reason if it is no normal end, `cwd` the directory that the agent was in.
    """

    parts: tuple[ApiPart, ...]
    cut: str | None = None
    cwd: str | None = None


def open_api(values: Iterable[Node], *, listed: bool) -> ApiAnswer | None:
    """Return the answer that the values hold, or None.

    Of those that are `listed` in one value, one is to be chosen; those in lines of their own follow
    each other.  Raises `JsonError`, and `UnreadableEdit` for several answers.
    """
    answers: list[ApiAnswer] = []
    turns = list(values) if listed else []
    if len(turns) > 1 and (_answer(turns[0]) or all(turn.text("role") for turn in turns)):
        raise _several(turns[0], "a list of messages", len(turns))
    for value in turns or values:
        if alternatives := _alternatives(value):
            raise _several(value, *alternatives)
        if not (answer := _answer(value)):
            return None
        answers.append(answer)
    parts = tuple(part for answer in answers for part in answer.parts)
    cut = next((answer.cut for answer in answers if answer.cut is not None), None)
    return ApiAnswer(parts, cut) if answers else None


def _several(value: Node, what: str, count: int) -> UnreadableEdit:
    return UnreadableEdit(
        value.line - 1,
        f"this holds {count} answers ({what}), and only one of them can be meant",
        "send the one answer that is meant, alone",
    )


def _alternatives(node: Node) -> tuple[str, int] | None:
    """Return the member that holds several answers, and how many."""
    for member in ("choices", "candidates"):
        items = items_of(node.get(member))
        if len(items) > 1 and all(item.get("message", "content") for item in items):
            return f"`{member}`", len(items)
    turns = items_of(node.get("messages"))
    if len(turns) > 1 and all(turn.text("role") for turn in turns):
        return "`messages`", len(turns)
    return None


def call_of(node: Node) -> ToolCall | None:
    """Return an object as a tool call of any API, or None.

    It has a name, arguments, and nothing else that says something.
    """
    inner, wrapper = _unwrapped(node)
    if not isinstance(inner.value, dict):
        return None
    named = [key for key in _NAMES if key in inner.value]
    given = [key for key in _ARGUMENTS if key in inner.value]
    outside = inner.value.keys() - {*named, *given}
    if wrapper is not None:
        outside |= node.value.keys() - {wrapper}
    if len(named) != 1 or len(given) != 1 or not outside <= _BESIDE:
        return None
    call = call_in(node)
    return call if call is not None and isinstance(call.arguments.value, dict | str) else None


def calls_of(node: Node) -> list[ToolCall] | None:
    """Return the calls of a message without an answer round it, or None.

    Such a message is `{"tool_calls": [...]}`.
    """
    items = items_of(node.get("tool_calls"))
    calls = [call for item in items if (call := call_of(item))]
    return calls if items and len(calls) == len(items) else None


def _answer(node: Node) -> ApiAnswer | None:
    if choice := _only(node, "choices"):
        message = choice.get("message")
        return _opened(message, choice.get("finish_reason")) if message else None
    if candidate := _only(node, "candidates"):
        return _opened(candidate.get("content"), candidate.get("finishReason"))
    if node.text("object") == "response" and node.get("output") is not None:
        return _response(node)
    by_model = node.text("role") in (None, "assistant")
    if by_model and node.get("content") and (node.text("role") or node.text("type") == "message"):
        return ApiAnswer(tuple(parts_of_message(node)), cut_of(node.get("stop_reason")))
    return None


def _opened(message: Node | None, reason: Node | None) -> ApiAnswer:
    return ApiAnswer(tuple(joined(parts_of_message(message))) if message else (), cut_of(reason))


def _only(node: Node, member: str) -> Node | None:
    items = items_of(node.get(member))
    return items[0] if len(items) == 1 and isinstance(items[0].value, dict) else None


def _response(node: Node) -> ApiAnswer:
    parts: list[ApiPart] = []
    details = node.get("incomplete_details")
    cut = cut_of(node.get("status"))
    if cut is not None and details is not None:
        cut = details.text("reason") or cut
    for item in items_of(node.get("output")):
        message = item.text("type") == "message"
        parts += joined(parts_of_message(item)) if message else _part(item)
        cut = cut or cut_of(item.get("status"))
    return ApiAnswer(tuple(parts), cut)


def parts_of_message(node: Node) -> Iterator[ApiPart]:
    """Yield the parts of one message, and then the calls beside them.

    The parts are its `content` or `parts`.
    """
    content, call = node.get("content", "parts"), node.get("function_call")
    if content is not None and content.value and isinstance(content.value, str):
        yield ApiText(content.value, (content.line, content.last))
    for item in (*items_of(content), *items_of(node.get("tool_calls")), *([call] if call else ())):
        yield from _part(item)


def _part(node: Node) -> Iterator[ApiPart]:
    """Yield the text or the call of a block, without thoughts."""
    kind = node.text("type") or ""
    thought = node.get("thought")
    if kind in _THOUGHTS or (thought is not None and thought.value is True):
        return
    if text := node.text("text"):
        yield ApiText(text, (node.line, node.last))
    elif text is None and (
        call := call_in(node, kind if kind.endswith(("_call", "tool_use")) else None)
    ):
        yield call


def joined(parts: Iterable[ApiPart]) -> Iterator[ApiPart]:
    """Yield the parts, with adjacent texts joined into one.

    An API may cut a text anywhere.
    """
    for is_text, run in groupby(parts, lambda part: isinstance(part, ApiText)):
        if is_text:
            texts = [part for part in run if isinstance(part, ApiText)]
            lines = texts[0].at[0], texts[-1].at[1]
            yield ApiText("".join(part.text for part in texts), lines)
        else:
            yield from run


def call_in(node: Node, name: str | None = None) -> ToolCall | None:
    """Return the call in a part, or None.

    `name` is an API's own tool, whose arguments have a shape of their own.
    """
    inner, _ = _unwrapped(node)
    name = inner.text(*_NAMES) or name
    if name is None:
        return None
    given = inner.get(*_ARGUMENTS) or inner.get("operation", "action")
    arguments = (
        Node({}, node.line, node.last, node.start, node.end) if given is None else _object(given)
    )
    return ToolCall(name, arguments, (node.line, node.last), node.text("id"))


def _unwrapped(node: Node) -> tuple[Node, str | None]:
    """Return the object with a call's name and arguments, and its key in `node`.

    The key is None if the object is `node` itself.
    """
    for key in _WRAPPERS:
        inner = node.get(key)
        if inner is not None and isinstance(inner.value, dict):
            return inner, key
    return node, None


def _object(node: Node) -> Node:
    with suppress(JsonError):
        inner = jsonish.parse(node.value or "{}") if isinstance(node.value, str) else node
        return inner if isinstance(inner.value, dict) else node
    return node


def items_of(node: Node | None) -> list[Node]:
    return node.value if node is not None and isinstance(node.value, list) else []


def cut_of(reason: Node | None) -> str | None:
    """Return the stop reason if it is no normal end, or None."""
    stop = reason.plain() if reason else None
    return None if stop is None or str(stop) in _ENDS else str(stop)
