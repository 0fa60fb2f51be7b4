"""One value in a JSON text, which may have comments: put there or taken out, all else is kept.

What was put there can be taken out to the byte: an object that was made for it begins with a blank,
which tells it from an empty one that was there.  Raises `JsonError`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from patchq.core.text.jsonish import JsonError, Node, parse, skip

_BLANKS = " \t\r\n"


def value_at(text: str, keys: Sequence[str]) -> Any:
    """Return the plain value under the keys, one in the other; None where there is none."""
    node = parse(text)
    for key in keys:
        if key not in _members(text, node):
            return None
        node = node.value[key]
    return node.plain()


def put(text: str, keys: Sequence[str], value: object) -> str:
    """Return the text with the value under the keys, in objects that are made if need be."""
    node = parse(text)
    for depth, key in enumerate(keys, 1):
        if key not in _members(text, node):
            member = json.dumps(value)
            for name in reversed(keys[depth:]):
                member = f"{{ {json.dumps(name)}: {member} }}"
            member = f"{json.dumps(key)}: {member}"
            start = node.start + 1
            rest = text[start:]
            lead = rest[: len(rest) - len(rest.lstrip(_BLANKS))]
            return text[:start] + (f"{lead}{member}," if node.value else member) + rest
        node = node.value[key]
    return text[: node.start] + json.dumps(value) + text[node.end :]


def take_out(text: str, keys: Sequence[str]) -> str | None:
    """Return the text without the value and the objects made for it; None if nothing is left.

    Members whose names begin with `$` do not keep a text that was made as a whole, over several
    lines: programs add them.
    """
    root = node = parse(text)
    cut = None
    for key in keys:
        outer, node = node, _members(text, node)[key]
        names = list(outer.value)
        before = outer.value[names[names.index(key) - 1]] if names[0] != key else None
        at = skip(text, before.end) if before else outer.start
        begin, end = skip(text, at + 1), skip(text, node.end)
        others = text[outer.start + 1 : begin] + text[node.end : outer.end - 1]
        stays = bool(others.strip(_BLANKS))
        if outer is root and text[node.start + 1] in "\r\n":
            stays = any(name[:1] != "$" for name in names if name != key)
        if stays or text[outer.start + 1] not in _BLANKS:
            first = len(text[:begin].rstrip(_BLANKS))
            cut = text[:first] + text[node.end :]
            if text[end] == ",":
                cut = text[:first] + text[end + 1 :]
            elif before:
                cut = text[:at] + text[at + 1 : first] + text[node.end :]
    return cut


def _members(text: str, node: Node) -> dict[str, Node]:
    if not isinstance(node.value, dict):
        raise JsonError(text, node.start, "expected an object")
    return node.value
