"""Grammars of languages, as far as they are installed (the extra `symbols`).

Each is a wheel of its own that brings its grammar along; nothing is fetched when it is used.  What
is installed only ever turns an outcome into a refusal or makes a definition's end known.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["function_definition", "class_definition", "import_statement", "decorator"]

_LANGUAGES = {
    "py": ("tree_sitter_python", "language"),
    "js": ("tree_sitter_javascript", "language"),
    "jsx": ("tree_sitter_javascript", "language"),
    "mjs": ("tree_sitter_javascript", "language"),
    "cjs": ("tree_sitter_javascript", "language"),
    "ts": ("tree_sitter_typescript", "language_typescript"),
    "mts": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rs": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "h": ("tree_sitter_cpp", "language"),
    "cc": ("tree_sitter_cpp", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "cxx": ("tree_sitter_cpp", "language"),
    "hpp": ("tree_sitter_cpp", "language"),
}
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "function_declaration", "generator_function_declaration", "function_definition",
            "function_item", "method_definition", "method_declaration", "constructor_declaration",
        ),
        "function_definition",
    ),
    **dict.fromkeys(
        (
            "class_declaration", "abstract_class_declaration", "interface_declaration",
            "enum_declaration", "record_declaration", "class_specifier", "struct_specifier",
            "struct_item", "enum_item", "trait_item", "impl_item", "type_declaration",
        ),
        "class_definition",
    ),
    **dict.fromkeys(
        ("import_statement", "import_declaration", "use_declaration", "preproc_include"),
        "import_statement",
    ),
    **dict.fromkeys(
        ("decorator", "annotation", "marker_annotation", "attribute_item"), "decorator"
    ),
}  # fmt: skip
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_BEFORE = ("decorator", "attribute_item")
MAX_DEPTH = 400


class Part(Struct, frozen=True):
    """Lines `start:end` (0-based, half-open) of a file that belong together.

    For a definition `start` is its first decorator's line, `header:body` are its header's lines.
    """

    kind: str
    name: str | None
    start: int
    end: int
    header: int
    body: int

    @classmethod
    def of_lines(cls, kind: str, name: str | None, start: int, end: int) -> Part:
        return cls(kind, name, start, end, start, end)


def is_code(path: str) -> bool:
    """Return whether the syntax of the file's language can be checked."""
    suffix = path.rpartition(".")[2].lower()
    return suffix == "pyi" or suffix in _LANGUAGES


def knows(path: str) -> bool:
    """Return whether the grammar of the file's language is installed."""
    return _parser(path.rpartition(".")[2].lower()) is not None


def flaw(path: str, source: bytes) -> tuple[int, str] | None:
    """Return the line (1-based) and message of the first syntax error, or None."""
    tree = _tree(path, source)
    if tree is None or not tree.root_node.has_error:
        return None
    node = tree.root_node
    while broken := next((child for child in node.children if child.has_error), None):
        node = broken
        if node.is_error or node.is_missing:
            break
    return node.start_point.row + 1, "a syntax error"


def balanced(path: str, source: bytes) -> bool:
    """Return whether the brackets among the source's tokens are balanced.

    They count as balanced where the language is unknown.
    """
    tree = _tree(path, source)
    opened: list[str] = []
    stack = [tree.root_node] if tree is not None else []
    while stack:
        node = stack.pop()
        if node.child_count:
            stack += reversed(node.children)
        elif not (node.is_named or node.is_missing):
            for sign in node.type:
                if sign in "([{":
                    opened.append(_CLOSING[sign])
                elif sign in ")]}" and (not opened or opened.pop() != sign):
                    return False
    return not opened


def named(path: str, source: bytes) -> list[Part] | None:
    """Return the parts that the source defines, imports and decorates.

    None if it does not parse or its language is unknown.
    """
    tree = _tree(path, source)
    if tree is None or tree.root_node.has_error:
        return None
    found: list[Part] = []
    stack = [(tree.root_node, 0)]
    while stack:
        node, depth = stack.pop()
        if node.type in _KINDS:
            found.append(_named(node, _KINDS[node.type]))
        if depth < MAX_DEPTH:
            stack += [(child, depth + 1) for child in reversed(node.named_children)]
    return found


@cache
def _parser(suffix: str) -> Any | None:
    module, function = _LANGUAGES.get(suffix, ("", ""))
    if not module:
        return None
    try:
        language = getattr(import_module(module), function)()
        core = import_module("tree_sitter")
    except ImportError:
        return None
    return core.Parser(core.Language(language))


def _tree(path: str, source: bytes) -> Any | None:
    parser = _parser(path.rpartition(".")[2].lower())
    return parser.parse(source) if parser is not None else None


def _named(node: Any, kind: Kind) -> Part:
    start, end = node.start_point.row, node.end_point.row + (node.end_point.column > 0)
    if kind in ("import_statement", "decorator"):
        return Part.of_lines(kind, node.text.decode("utf-8", "replace").strip(), start, end)
    name = _name(node)
    header = name.start_point.row if name is not None else start
    body = node.child_by_field_name("body")
    behind = body.start_point.row + 1 if body is not None else header + 1
    text = name.text.decode("utf-8", "replace") if name is not None else ""
    return Part(kind, text, _start(node), end, header, min(max(behind, header + 1), end))


def _name(node: Any) -> Any | None:
    for field in ("name", "declarator", "type"):
        if found := node.child_by_field_name(field):
            return found if field == "type" else _name_inside(found)
    specs = [child for child in node.named_children if child.type == "type_spec"]
    return _name(specs[0]) if specs else None


def _name_inside(node: Any) -> Any:
    while inner := node.child_by_field_name("declarator") or node.child_by_field_name("name"):
        node = inner
    return node


def _start(node: Any) -> int:
    """Return the first line of a definition, with its export and decorators."""
    if node.parent is not None and node.parent.type == "export_statement":
        node = node.parent
    before = node.prev_named_sibling
    while before is not None and before.type in _BEFORE:
        node, before = before, before.prev_named_sibling
    row: int = node.start_point.row
    return row
