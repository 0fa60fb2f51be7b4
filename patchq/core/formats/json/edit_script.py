"""Edit scripts: edits at anchors that the response only selects.

    {"file": "path/to/file.py",
     "edits": [{"type": "insert_after",
                "anchor": {"type": "line_pattern", "selected": "import os"},
                "content": "import re"}]}

An anchor is a line, or a definition by its header or name; where a definition ends is for the
resolver to find.  `content` is whole lines: one final newline ends the last of them.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from patchq.core.formats.format import Format
from patchq.core.formats.json.members import JsonPlace, Members
from patchq.core.model.ops import Anchored
from patchq.core.model.values import Edit
from patchq.core.text.jsonish import Node

NAME = "edit_script"
INSTRUCTIONS = """\
Answer with one JSON object for every file:

{
  "file": "path/to/file.py",
  "edits": [
    {
      "type": "insert_after",
      "anchor": {"type": "line_pattern", "selected": "import os"},
      "content": "import re\\n",
      "description": "what this edit is for"
    }
  ]
}

`type` is `insert_before`, `insert_after`, `replace` or `delete` (without `content`). The anchor's
type is `line_pattern`, `import_statement` or `decorator` with the whole line as `selected`, or
`function_definition` or `class_definition` with the header line as `selected` or with its `name`.
The anchor must occur once; if it does not, add its `line`. For `replace`, `"scope": "line"` or
`"scope": "definition"` says what of a definition is replaced. Edits apply in order. `content` is
whole lines with their indentation.
"""

_HINTS = get_type_hints(Anchored)
_ACTIONS: tuple[str, ...] = get_args(_HINTS["action"])
_KINDS: tuple[str, ...] = get_args(_HINTS["kind"])
_DEFINITIONS = ("function_definition", "class_definition")
_SCOPES = ("line", "definition")
_HINT = (
    "send `type`, `anchor` with `type` and `selected`, and `content` as whole lines; see "
    "`patchq formats edit_script`"
)


def read_edit(node: Node, place: JsonPlace, default_path: str | None) -> Edit:
    """One edit of a script; `default_path` is the script's file.  Raises `UnreadableEdit`."""
    members = Members(node, place)
    anchor = members.inner("anchor", _HINT)
    action, kind = _one_of(members, "type", _ACTIONS), _one_of(anchor, "type", _KINDS)
    selected, name = _anchor_of(anchor, kind)
    op = Anchored(
        action=action,
        kind=kind,
        selected=selected,
        name=name,
        content=_content(members, action),
        line=anchor.number("line", "lineno"),
        scope=_scope(members) or _scope(anchor),
        candidates=anchor.texts("candidates") or None,
    )
    return members.edit(NAME, op, default_path)


def _one_of(members: Members, key: str, allowed: tuple[str, ...]) -> Any:
    found = members.text(key)
    if found not in allowed:
        names = ", ".join(f"`{name}`" for name in allowed)
        raise members.error(f"expected {key!r} to be one of {names}, found {found!r}", _HINT)
    return found


def _anchor_of(anchor: Members, kind: str) -> tuple[str | None, str | None]:
    """The line and the name that an anchor states; `selected` says more than `pattern`."""
    name = anchor.text("name") if kind in _DEFINITIONS else None
    selected = anchor.text("selected")
    if selected is None:
        selected = anchor.text("pattern")
    blank = selected is not None and not selected.strip()
    either = "`selected` or `name`" if kind in _DEFINITIONS else "`selected`"
    anchor.check(
        _HINT,
        (blank, "expected a line with text as the anchor, found a blank one"),
        (
            selected is None and not (name and name.strip()),
            f"expected {either} in the anchor, found neither",
        ),
    )
    return selected and selected.rstrip("\r\n"), name


def _content(members: Members, action: str) -> str:
    content = members.text("content")
    if action == "delete":
        if content:
            raise members.error(
                "expected no `content` in a `delete`", "to put other lines there, use `replace`"
            )
        return ""
    if not content:
        raise members.error(
            f"expected the lines of the `{action}` as `content`, found none",
            'to remove lines, use `delete`; a blank line is `"\\n"`',
        )
    return content if content.endswith("\n") else content + "\n"


def _scope(members: Members) -> Any:
    return _one_of(members, "scope", _SCOPES) if "scope" in members else None


FORMAT = Format(NAME, INSTRUCTIONS)
