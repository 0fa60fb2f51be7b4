"""How the edits of a response depend on each other, wherever in it they stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from patchq.core.formats import parse
from patchq.core.model.values import Parsed

DEPENDENCY = "edit.dependency"
UNREADABLE = "response.unreadable_edit"
Relations = dict[str, tuple[tuple[str, ...], str | None]]


def change(id: str | None = None, **members: Any) -> dict[str, Any]:
    edit = {"type": "modification", "file": "a.py", "target": "x", "replacement": "y", "id": id}
    return edit | members


def context(id: str | None = None, **members: Any) -> dict[str, Any]:
    pattern = {"before": "a", "target": "x", "after": "b"}
    edit = {"type": "modification", "file": "a.py", "searchPattern": pattern, "replacement": "y"}
    return edit | {"id": id} | members


def indexed(*edits: Any) -> dict[str, Any]:
    return {"edits": list(edits)}


def contextual(*edits: Any) -> dict[str, Any]:
    return {"contextualEdits": list(edits)}


def lines(*values: Any) -> str:
    return "\n".join(map(json.dumps, values))


def fences(*values: Any) -> str:
    return "\n\nAnd:\n\n".join(f"```json\n{json.dumps(value)}\n```" for value in values)


def texts(*values: Any) -> str:
    parts = [{"type": "text", "text": f"Here.\n\n{json.dumps(value)}\n"} for value in values]
    return json.dumps({"role": "assistant", "content": parts})


def calls(*values: Any) -> str:
    parts = [{"type": "tool_use", "name": "apply_edits", "input": value} for value in values]
    return json.dumps({"role": "assistant", "content": parts})


def read(text: str) -> Parsed:
    return parse(text, {"a.py"}.__contains__)


def relations(text: str) -> Relations:
    parsed = read(text)
    assert parsed.problems == ()
    return {
        f"{edit.format} {edit.id}": (edit.depends_on, edit.fallback_of) for edit in parsed.edits
    }


@pytest.mark.parametrize(
    "edits",
    [
        (change("a", cascades=["b", "c"]), change("b"), change("c")),
        (change("a"), change("b", dependsOn="a"), change("c", dependsOn=["a"])),
        (change("a", cascades=["b", "c"]), change("b", dependsOn="a"), change("c")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("write", [lines, fences, texts, calls])
def test_either_side_states_the_relation(edits: tuple[Any, ...], write: Callable[..., str]) -> None:
    expected = {
        "indexed a": ((), None), "indexed b": (("a",), None), "indexed c": (("a",), None),
    }  # fmt: skip
    assert relations(json.dumps(indexed(*edits))) == expected
    assert relations(write(*map(indexed, edits))) == expected


@pytest.mark.parametrize("write", [lines, fences, texts, calls])
def test_contextual_edit_with_the_id_of_an_indexed_one_is_its_backup(
    write: Callable[..., str],
) -> None:
    one = indexed(change("a"), change("b", dependsOn="a"))
    other = contextual(context("a"), context("ctx", dependsOn="b"), context())
    expected = {
        "indexed a": ((), None),
        "indexed b": (("a",), None),
        "contextual a": ((), "a"),
        "contextual ctx": (("b",), None),
        "contextual 5": ((), None),
    }
    assert relations(json.dumps(one | other)) == relations(write(one, other)) == expected


def test_unknown_id_in_cascades_is_a_warning() -> None:
    (warning,) = read(fences(indexed(change("a", cascades=["c"])), indexed(change("b")))).problems
    told = warning.code, warning.severity, warning.edit, warning.line
    assert told == (DEPENDENCY, "warning", "a", 2)
    assert "'c'" in warning.message


@pytest.mark.parametrize(
    ("values", "code", "line"),
    [
        ([indexed(change("a")), indexed(change("b", dependsOn="c"))], DEPENDENCY, 2),
        ([indexed(change("a", dependsOn="a"))], DEPENDENCY, 1),
        ([indexed(change()), indexed(change("a", cascades="a"))], DEPENDENCY, 2),
        ([indexed(change("a")), indexed(change("a")), indexed(change("b", dependsOn="a"))],
            UNREADABLE, 2),
        ([indexed(change("a")), contextual(context("a")), contextual(context("a"))], UNREADABLE, 3),
    ],
)  # fmt: skip
def test_relation_is_an_error(values: list[Any], code: str, line: int) -> None:
    (problem,) = read(lines(*values)).problems
    assert (problem.code, problem.line) == (code, line)
