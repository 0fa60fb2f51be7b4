"""Calls of editing tools, in every shape that they have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from bench.corpus.rewrites.kinds.beside import fenced, sample
from bench.corpus.rewrites.kinds.wrappers import other_result
from bench.corpus.rewrites.registry import Brief, Files, Rewrite, exact, kind, refuse
from bench.corpus.rewrites.tasks import applied, lines_of

PATH = "notes/table.txt"
TABLE = "one 1\ntwo 2\nthree 3\ntwo 2\nfour 4\n"
TREE = "tools/tree.py"
CODE = "def f(x):\n    if x:\n        y = 1\n        z = 2\n    return x\n"
_CALL = {"file_path": PATH, "old_string": "three 3", "new_string": "three 33"}
_THREE = TABLE.replace("three 3", "three 33")
_TWO = {"path": PATH, "old_str": "two 2", "new_str": "two 22"}
_TWICE = TABLE.replace("two 2", "two 22")
_PAIR = [{"old_string": "one 1", "new_string": "one 11"},
         {"old_string": "three 3", "new_string": "three 33"}]  # fmt: skip
_BOTH = _THREE.replace("one 1", "one 11")
_EDITOR = "str_replace_based_edit_tool"


def _named(name: str, **words: object) -> Mapping[str, object]:
    return {"name": name, "arguments": words}


_READ: tuple[tuple[str, Files, object, Mapping[str, str | None]], ...] = (
    ("a stated number of occurrences", {PATH: TABLE}, {**_TWO, "expected_replacements": 2},
     {PATH: _TWICE}),
    ("replace_all", {PATH: TABLE}, {**_TWO, "replace_all": True}, {PATH: _TWICE}),
    ("allow_multiple", {PATH: TABLE}, {**_TWO, "allow_multiple": True}, {PATH: _TWICE}),
    ("camel case", {PATH: TABLE},
     {"filePath": PATH, "oldString": "three 3", "newString": "three 33"}, {PATH: _THREE}),
    ("several edits of one file", {PATH: TABLE}, {"file_path": PATH, "edits": _PAIR},
     {PATH: _BOTH}),
    ("several edits as a text", {PATH: TABLE}, {"file_path": PATH, "edits": json.dumps(_PAIR)},
     {PATH: _BOTH}),
    ("MultiEdit", {PATH: TABLE}, _named("MultiEdit", file_path=PATH, edits=_PAIR), {PATH: _BOTH}),
    ("the editor's str_replace", {PATH: TABLE},
     _named(_EDITOR, command="str_replace", path=PATH, old_str="three 3", new_str="three 33"),
     {PATH: _THREE}),
    ("the editor's create", {},
     _named(_EDITOR, command="create", path=PATH, file_text=TABLE), {PATH: TABLE}),
    ("the editor's insert", {PATH: TABLE},
     _named(_EDITOR, command="insert", path=PATH, insert_line=1, insert_text="more\n"),
     {PATH: TABLE.replace("one 1\n", "one 1\nmore\n")}),
    ("the editor's view", {PATH: TABLE},
     [_named(_EDITOR, command="view", path=PATH), _named("Edit", **_CALL)], {PATH: _THREE}),
    ("calls that only look", {PATH: TABLE},
     [_named("read_file", path=PATH), _named("Grep", pattern="x", path="notes"),
      _named("list_dir", path="notes"), _named("Edit", **_CALL)], {PATH: _THREE}),
    ("an empty old text over an empty file", {PATH: ""},
     {"file_path": PATH, "old_string": "", "new_string": TABLE}, {PATH: TABLE}),
    ("part of a line taken out", {PATH: TABLE},
     _named("Edit", file_path=PATH, old_string="ree 3", new_string=""),
     {PATH: TABLE.replace("three 3", "th")}),
    ("behind the line's indentation", {TREE: CODE},
     {"file_path": TREE, "old_string": "y = 1\n        z = 2",
      "new_string": "y = 2\n        z = 3"},
     {TREE: CODE.replace("y = 1", "y = 2").replace("z = 2", "z = 3")}),
    ("lines of a call without a name taken out literally", {PATH: TABLE},
     {"file_path": PATH, "old_string": "three 3", "new_string": ""},
     {PATH: TABLE.replace("three 3\n", "\n")}),
    ("lines of an Edit taken out with their end", {PATH: TABLE},
     _named("Edit", file_path=PATH, old_string="three 3", new_string=""),
     {PATH: TABLE.replace("three 3\n", "")}),
    ("lines of a MultiEdit taken out with their end", {PATH: TABLE},
     _named("MultiEdit", file_path=PATH, edits=[{"old_string": "three 3", "new_string": ""}]),
     {PATH: TABLE.replace("three 3\n", "")}),
    ("lines with their end taken out", {PATH: TABLE},
     _named("Edit", file_path=PATH, old_string="three 3\n", new_string=""),
     {PATH: TABLE.replace("three 3\n", "")}),
)  # fmt: skip
for _name, _before, _value, _after in _READ:
    sample(f"call: {_name}", "calls", _before, fenced(_value), _after)

_REFUSED: tuple[tuple[str, Files, object], ...] = (
    ("another number of occurrences", {PATH: TABLE}, {**_TWO, "expected_replacements": 3}),
    ("a repeated target", {PATH: TABLE}, _TWO),
    ("no old text", {PATH: TABLE}, {"file_path": PATH, "new_string": "three 33"}),
    ("no path", {PATH: TABLE}, {"old_string": "three 3", "new_string": "three 33"}),
    ("an empty old text over a file with text", {PATH: TABLE},
     {"file_path": PATH, "old_string": "", "new_string": "other\n"}),
    ("a creation over a file with text", {PATH: TABLE},
     _named(_EDITOR, command="create", path=PATH, file_text="other\n")),
    ("an unknown call with a path and a text", {PATH: TABLE},
     _named("frobnicate", path=PATH, text="other\n")),
    ("an insertion behind the end", {PATH: TABLE},
     _named(_EDITOR, command="insert", path=PATH, insert_line=99, insert_text="more\n")),
    ("a replacement that lost its indentation", {TREE: CODE},
     {"file_path": TREE, "old_string": "y = 1\n        z = 2",
      "new_string": "y = 2\n    z = 3\nw = 4"}),
)  # fmt: skip
for _name, _before, _value in _REFUSED:
    sample(f"call: {_name}", "calls", _before, fenced(_value), None)


# ---------------------------------------------------------------- answers of APIs

Shape = Mapping[str, object]


def _texts(text: str, stop: object) -> dict[str, Shape]:
    """One answer in the shape of every API, with a reason to stop where it has one."""
    return {
        "messages": {"type": "message", "role": "assistant", "stop_reason": stop,
                     "content": [{"type": "text", "text": text}]},
        "chat": {"object": "chat.completion", "choices": [
            {"index": 0, "finish_reason": stop,
             "message": {"role": "assistant", "content": text}}]},
        "responses": {"object": "response", "status": stop, "output": [
            {"type": "message", "role": "assistant", "status": stop,
             "content": [{"type": "output_text", "text": text, "annotations": []}]}]},
        "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]},
                                   "finishReason": stop, "index": 0}]},
    }  # fmt: skip


NORMAL = {"messages": ("end_turn", "stop_sequence"), "chat": ("stop",),
          "responses": ("completed",), "gemini": ("STOP",)}  # fmt: skip
CUT = {"messages": ("max_tokens", "refusal", "pause_turn"), "chat": ("length", "content_filter"),
       "responses": ("incomplete", "failed"),
       "gemini": ("MAX_TOKENS", "SAFETY", "RECITATION")}  # fmt: skip


def _answer(brief: Brief, ends: Mapping[str, tuple[str, ...]]) -> str | None:
    if not brief.form.in_text:
        return None
    api = brief.dice.choice(list(ends))
    text = f"I change it.\n\n{brief.response()}"
    return json.dumps(_texts(text, brief.dice.choice(ends[api]))[api])


@kind("API: every normal end", "answers")
def _normal(brief: Brief) -> Rewrite | None:
    response = _answer(brief, NORMAL)
    return exact(response) if response else None


@kind("API: every other end", "answers")
def _other_end(brief: Brief) -> Rewrite | None:
    response = _answer(brief, CUT)
    return refuse(response) if response else None


@kind("API: no reason to stop", "answers")
def _no_reason(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    api = brief.dice.choice(["messages", "chat", "gemini"])
    return exact(json.dumps(_texts(f"I change it.\n\n{brief.response()}", None)[api]))


@kind("API: front matter before the answer", "answers")
def _front(brief: Brief) -> Rewrite | None:
    response = _answer(brief, NORMAL)
    return exact(f"---\nagent: x\nmessage: Do it\n---\n{response}") if response else None


@kind("API: two choices", "answers")
def _choices(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    value = json.loads(json.dumps(_texts(brief.response(), "stop")["chat"]))
    other = {**value["choices"][0], "index": 1}
    value["choices"].append(other)
    return refuse(json.dumps(value))


@kind("API: a list of answers", "answers")
def _answers(brief: Brief) -> Rewrite | None:
    other = other_result(brief) if brief.form.in_text else None
    if other is None:
        return None
    values = [_texts(text, "end_turn")["messages"] for text in (other, brief.response())]
    return refuse(json.dumps(values))


@kind("API: one answer on each line", "answers")
def _lines(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text or len(brief.changes) < 2 or brief.form.family == "files":
        return None
    half = len(brief.changes) // 2
    parts = brief.changes[:half], brief.changes[half:]
    values = [_texts(brief.response(part), "end_turn")["messages"] for part in parts]
    return exact("".join(json.dumps(value) + "\n" for value in values))


@kind("API: calls of Responses", "answers")
def _responses_calls(brief: Brief) -> Rewrite | None:
    if brief.form.name != "chat":
        return None
    message = json.loads(brief.response())["choices"][0]["message"]
    output = [
        {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "status": "completed",
         **call["function"]}
        for n, call in enumerate(message["tool_calls"])
    ]  # fmt: skip
    return exact(json.dumps({"object": "response", "status": "completed", "output": output}))


@kind("API: calls of generateContent", "answers")
def _gemini_calls(brief: Brief) -> Rewrite | None:
    if brief.form.name != "chat":
        return None
    message = json.loads(brief.response())["choices"][0]["message"]
    calls = [call["function"] for call in message["tool_calls"]]
    parts = [
        {"functionCall": {"name": call["name"], "args": json.loads(call["arguments"])}}
        for call in calls
    ]
    content = {"role": "model", "parts": parts}
    return exact(json.dumps({"candidates": [{"content": content, "finishReason": "STOP"}]}))


@kind("calls: a whole file that the response is", "calls")
def _only_file(brief: Brief) -> Rewrite | None:
    if brief.form.name != "whole_file" or len(brief.changes) != 1:
        return None
    c = brief.changes[0]
    return exact(json.dumps({"file_path": c.path, "content": c.new}))


@kind("calls: a later one quotes what an earlier one wrote", "order")
def _sequence(brief: Brief) -> Rewrite | None:
    if brief.form.family not in {"api", "calls"} or not brief.replacements():
        return None
    c = brief.replacements()[0]
    lines = lines_of(c.new or "")
    fresh = [line for line in lines if line not in lines_of(c.old or "") and line.strip()]
    if not fresh:
        return None
    middle = "".join("step_between = 1\n" if line == fresh[0] else line for line in lines)
    first = replace(c, new=middle)
    second = replace(c, old="step_between = 1\n", new=fresh[0])
    rest = [other for other in brief.changes if other is not c]
    losses = [applied(brief.task.before, [*rest, first])]
    return exact(brief.response([first, second, *rest]), losses=losses, extra=1)


sample("call: only the new text escaped", "calls", {TREE: CODE},
       fenced({"file_path": TREE, "old_string": "    return x\n",
               "new_string": "    x += 1\\n    return x\n"}),
       {TREE: CODE.replace("    return x\n", "    x += 1\n    return x\n")})  # fmt: skip
sample("call: a new file of escapes without a line", "calls", {},
       fenced(_named("write_file", path=TREE, content="a = 1\\nb = 2\\n")), None)  # fmt: skip
sample("JSON with an edit's old half alone", "calls", {PATH: TABLE},
       fenced({"file_path": PATH, "old_string": "three 3"}), None)  # fmt: skip
sample("JSON with a list of edits that are none", "calls", {PATH: TABLE},
       fenced({"file_path": PATH, "edits": [{"target": "three 3"}]}), None)  # fmt: skip
