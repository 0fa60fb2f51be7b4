"""YAML nodes as plain values."""

from __future__ import annotations

from patchq.core.text.yamlio import Mapping, Node, Sequence, YamlError, duplicates


def plain(node: Node | None) -> object:
    """The node as dicts, lists and values; raises `YamlError` for a duplicate key."""
    for key, first in duplicates(node):
        message = f"the key `{key.text}` stands already in line {first.line}"
        raise YamlError(message, key.line, key.column)
    return _plain(node)


def _plain(node: Node | None) -> object:
    if isinstance(node, Mapping):
        return {key.text: _plain(value) for key, value in node.entries}
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    return node.value if node is not None else None
