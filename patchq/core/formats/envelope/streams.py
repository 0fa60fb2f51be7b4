"""Reading of agents' own output: a session's events, and the input of hooks.

    {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_1", …}]}}
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", …}]}}
    {"type": "result", "subtype": "success", "is_error": false, "result": "…"}

A session tells what became of its calls: one that was denied, or failed, has changed nothing.  So a
call counts once by its id, and only if a result says that it was made; how the session ended tells
whether all of it is there.  A hook's object is one call, which is about to be made.

The events of Claude Code are read.  What an event of another kind says is passed over, unless it
holds a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from msgspec.structs import replace

from patchq.core.formats.envelope.api_json import (
    ApiAnswer,
    ApiPart,
    ApiText,
    ToolCall,
    Unopened,
    call_in,
    cut_of,
    items_of,
    joined,
    open_api,
    parts_of_message,
)
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError, Node

_CALLED = frozenset({"PreToolUse", "PermissionRequest", "PostToolUse", "BeforeTool", "AfterTool"})
_EVENTS = frozenset({"system", "assistant", "user", "result"})
# Events that say nothing of their own.
_REPEATS = frozenset(
    {"stream_event", "control_request", "control_response", "rate_limit_event", "tool_progress"}
)
_ARGUMENTS = ("input", "args", "arguments", "parameters", "tool_input")
# The kinds of the events of `codex exec --json`.
_NAMES_FILES = re.compile(r"(?:thread|turn|item|session)\.[a-z_]+")
_BY_TREE = "hand in the work tree that the agent changed: `patchq submit --worktree DIR`"
_CODEX = (
    "this is what `codex exec --json` prints, which names the changed files without their text",
    _BY_TREE,
)
# Tools of Claude Code that change no file, whatever their words look like.
_TALK = frozenset({"Agent", "Task", "ExitPlanMode", "SendMessage", "LSP"})
_FAILED_WORDS = "<tool_use_error>"
WHOLE = "send the whole stream, with the results of its calls, or the edits alone"


def open_answer(text: str) -> ApiAnswer | None:
    """Return the opened answer of an API or agent, or None.

    The text as a whole must be that answer.
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        first, values, listed = _values(text)
    except JsonError:
        return None
    if first is None:
        return None
    if not is_event(first):
        try:
            return open_api(values, listed=listed)
        except JsonError:
            return None
    try:
        return open_stream(values)
    except JsonError as error:
        if error.cut:
            return ApiAnswer((), unreadable=cut(error.line, "within an event"))
        message = f"the stream cannot be read, column {error.column}: {error}"
        return ApiAnswer((), unreadable=Unopened(error.line, message, WHOLE))


def _values(text: str) -> tuple[Node | None, Iterator[Node], bool]:
    """Return the first value, all values, and whether one list holds them.

    All are read lazily, so that a text of other JSON costs no more than its first value.  Raises
    `JsonError`.
    """
    values = jsonish.parse_each(text)
    first = next(values)
    if not isinstance(first.value, list):
        return first, chain((first,), values), False
    if next(values, None) is not None:
        return None, values, False
    items: list[Node] = first.value
    return (items[0] if items else None), iter(items), True


def is_event(node: Node) -> bool:
    """Return whether a value is an event of an agent, or a hook's object."""
    kind = node.text("type") or ""
    if node.text("hook_event_name") or _NAMES_FILES.fullmatch(kind):
        return True
    message = node.get("message")
    inner = message is not None and isinstance(message.value, dict)
    if kind and (kind in _REPEATS or node.text("session_id", "sessionId", "sessionID")):
        return True
    stated = node.get("subtype", "is_error") is not None
    return kind in _EVENTS and (inner or (stated and kind in ("system", "result")))


def open_stream(events: Iterable[Node]) -> ApiAnswer:
    """Return the answer in a stream of events.

    Raises `JsonError`.
    """
    stream = _Stream()
    for event in events:
        if flaw := stream.read(event):
            return ApiAnswer((), unreadable=flaw)
    return stream.answer()


@dataclass
class _Stream:
    parts: list[ApiPart] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    # True if the call of that id was made, as its result says.
    made: dict[str, bool] = field(default_factory=dict)
    # The texts that were met, with their messages' ids.
    texts: set[tuple[str, str]] = field(default_factory=set)
    cwd: str | None = None
    model: str | None = None
    # True if the events are those of a session, whose results tell what was made.
    session: bool = False
    ended: bool = False
    last: int = 1  # the line of the last event
    cut: str | None = None  # why the model stopped, if that was no normal end of a message
    failed: str | None = None  # how the last turn ended, if that was no success

    def read(self, event: Node) -> Unopened | None:
        """Read an event, and return the reason to refuse all, if any."""
        if not isinstance(event.value, dict):
            return _unreadable(event, "expected an event, a JSON object", WHOLE)
        self.last, kind = event.last, event.text("type") or ""
        if event.text("hook_event_name"):
            return self._hook(event)
        if _NAMES_FILES.fullmatch(kind):
            return _unreadable(event, *_CODEX)
        if kind not in _EVENTS:
            if kind not in _REPEATS and _holds_call(event):
                return _unreadable(event, f"an event of the kind {kind!r} holds a call", WHOLE)
            return None
        self.session = True
        message, parent = event.get("message"), event.text("parent_tool_use_id")
        if kind == "system":
            self.cwd = event.text("cwd") or self.cwd
            self.model = self.model or event.text("model")
        elif kind == "result":
            self._result(event)
        elif message is not None and kind == "user":
            result = event.get("tool_use_result", "toolUseResult")
            changed = result.get("userModified") if result is not None else None
            if changed is not None and changed.value is True:
                return _unreadable(event, "a person changed an edit of this stream", _BY_TREE)
            self._results(message)
        elif message is not None:
            return self._message(message, of_another=parent is not None)
        return None

    def _hook(self, event: Node) -> Unopened | None:
        name, given = event.text("tool_name"), event.get("tool_input")
        if name is None or given is None:
            return None
        key, kind = event.text("tool_use_id"), event.text("hook_event_name")
        if kind not in _CALLED:
            return _unreadable(event, f"a hook's object of the kind {kind!r} tells no call", WHOLE)
        call = ToolCall(name, given, (event.line, event.last), key)
        return self._call(replace(call, arguments=_below(given, event.text("cwd"))), key, event)

    def _message(self, message: Node, *, of_another: bool) -> Unopened | None:
        """Take in a message, which may come in pieces, and again with the next.

        The text of another agent is no part of the answer.
        """
        self.ended, self.failed = False, None
        self.model = self.model or message.text("model")
        self.cut = cut_of(message.get("stop_reason")) or self.cut
        for part in parts_of_message(message):
            if isinstance(part, ApiText) and of_another:
                continue
            if isinstance(part, ApiText):
                text = message.text("id") or "", part.text
                if not (text[0] and text in self.texts):
                    self.parts.append(part)
                self.texts.add(text)
                continue
            placed = replace(part, arguments=_below(part.arguments, self.cwd))
            if flaw := self._call(placed, part.id, message):
                return flaw
        return None

    def _call(self, call: ToolCall, key: str | None, node: Node) -> Unopened | None:
        if key is None:
            if self.session:
                return _unreadable(node, "a call in this stream has no id", WHOLE)
            self.parts.append(call)
            return None
        known = self.calls.setdefault(key, call)
        if known is call:
            self.parts.append(call)
        elif (known.name, known.arguments.plain()) != (call.name, call.arguments.plain()):
            return _unreadable(node, f"two different calls have the id {key!r}", WHOLE)
        return None

    def _results(self, message: Node) -> None:
        items = [
            (key, item)
            for item in items_of(message.get("content"))
            if item.text("type") == "tool_result" and (key := item.text("tool_use_id"))
        ]
        for key, item in items:
            error = item.get("is_error")
            failed = (error is not None and bool(error.value)) or _says_error(item)
            self.made[key] = self.made.get(key, True) and not failed

    def _result(self, event: Node) -> None:
        """Read the end of a turn, whose text repeats the last message."""
        self.ended = True
        error, how = event.get("is_error"), event.text("subtype") or "success"
        failed = error is not None and bool(error.value)
        self.cut = cut_of(event.get("stop_reason")) or self.cut
        self.failed = how if how != "success" else "an error" if failed else None
        for denied in items_of(event.get("permission_denials")):
            self.made[denied.text("tool_use_id") or ""] = False
        if not (self.texts or self.calls) and (text := event.text("result")):
            self.parts.append(ApiText(text, (event.line, event.last)))

    def answer(self) -> ApiAnswer:
        if self.failed:
            return ApiAnswer((), unreadable=cut(self.last, f"in {self.failed}"))
        if self.session and not (self.ended or self.cut):
            return ApiAnswer((), unreadable=cut(self.last, "without its event `result`"))
        parts = [made for part in self.parts if (made := self._made(part))]
        cwd = self.cwd if self.session else None
        if self.session:
            parts = [one for one in parts if isinstance(one, ApiText) or one.name not in _TALK]
        return ApiAnswer(tuple(joined(parts)), self.cut, self.model, cwd)

    def _made(self, part: ApiPart) -> ApiPart | None:
        """Return the part, with the fate of its call, or None.

        None for a call that was not made.
        """
        if isinstance(part, ApiText) or part.id is None:
            return part
        made = self.made.get(part.id)
        return None if made is False else replace(part, certain=bool(made) or not self.session)


def _says_error(result: Node) -> bool:
    content = result.get("content")
    words = result.text("content") or next((i.text("text") for i in items_of(content)), None)
    return (words or "").startswith(_FAILED_WORDS)


def cut(line: int, how: str) -> Unopened:
    """Return the refusal of an incomplete stream."""
    hint = "let the agent go on to its end, and send the whole stream, or the edits alone"
    return Unopened(line, f"the stream ends {how}", hint, "response.truncated")


def _unreadable(node: Node, message: str, hint: str) -> Unopened:
    return Unopened(node.line, message, hint)


def _plain(key: str) -> str:
    return re.sub("[^a-z]", "", key.lower())


def _holds_call(node: Node) -> bool:
    if isinstance(node.value, list):
        return any(map(_holds_call, node.value))
    if not isinstance(node.value, dict):
        return False
    given = (node.get(key) for key in _ARGUMENTS)
    if any(arguments is not None and isinstance(arguments.value, dict) for arguments in given):
        return True
    return call_in(node) is not None or any(map(_holds_call, node.value.values()))


# ---------------------------------------------------------------- where its paths stand

_PATHS = frozenset(
    {"path", "filepath", "file", "filename", "targetfile", "relativepath", "notebookpath"}
)
_HEADER = re.compile(r"^(\*\*\* (?:(?:Add|Update|Delete) File|Move to): )(.+)$", re.MULTILINE)
_WHOLE = re.compile(r"[/~\\]|[A-Za-z]:")


def _below(arguments: Node, cwd: str | None) -> Node:
    """Return the arguments with their relative paths below the agent's directory."""
    if not cwd or not isinstance(arguments.value, dict):
        return arguments
    members: Mapping[str, Node] = arguments.value
    return replace(arguments, value={key: _member(key, m, cwd) for key, m in members.items()})


def _member(key: str, node: Node, cwd: str) -> Node:
    if isinstance(node.value, list):
        return replace(
            node,
            value=[
                _below(item, cwd) if isinstance(item.value, dict) else _member("", item, cwd)
                for item in node.value
            ],
        )
    if not isinstance(node.value, str):
        return node
    if _plain(key) in _PATHS:
        return replace(node, value=_whole(node.value.strip(), cwd))
    if "*** " not in node.value:
        return node
    return replace(node, value=_HEADER.sub(lambda m: m[1] + _whole(m[2], cwd), node.value))


def _whole(path: str, cwd: str) -> str:
    relative = path and not _WHOLE.match(path)
    return f"{cwd.rstrip('/')}/{path.removeprefix('./')}" if relative else path
