"""The package's rooms and the imports between them; `python -m tests.helpers.rooms` draws them.

The command writes what `docs/architecture.md` shows between its markers, of the rooms and of the
decisions; a test compares the page with the code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from tests.helpers.pages import ARCHITECTURE, ROOT, rewrite

PACKAGE = ROOT / "patchq"

TIERS = ("core", "gate")
"""Folders of rooms; every other entry of the package is a room."""
ROOMS = (
    "core/model", "core/text", "core/formats", "core/resolve", "core/plan", "core/api",
    "gate/errors", "gate/report", "gate/config", "gate/git", "gate/queue", "gate/hooks", "llm",
    "gate/pipeline", "gate/land", "gate/intake", "gate/review", "gate/service", "gate/api", "forge",
    "page", "mcp", "cli",
)  # fmt: skip
"""Lowest first: a module imports from its own room and from those before it."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_bytes(), module)


def room_of(module: str) -> str | None:
    """Return the room that holds the module; None for the package, a tier and `__main__`."""
    parts = module.split(".")[1:]
    room = "/".join(parts[:2] if parts and parts[0] in TIERS else parts[:1])
    return room if room in ROOMS else None


def imports(module: str) -> Iterator[str]:
    """The full names of everything that the module imports, wherever in it."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*(above if node.level else []), *([node.module] if node.module else [])]
            origin = ".".join(parts)
            for alias in node.names:
                whole = f"{origin}.{alias.name}"
                yield whole if whole in MODULES else origin


def own_imports(module: str) -> set[str]:
    """The modules of the package that the module imports."""
    return {name for name in imports(module) if name.split(".")[0] == "patchq"} - {module}


@cache
def neighbours() -> dict[str, set[str]]:
    """For each room the rooms that it imports from."""
    graph: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module in MODULES:
        room = room_of(module)
        if room is not None:
            graph[room] |= {other for name in own_imports(module) if (other := room_of(name))}
    return {room: others - {room} for room, others in graph.items()}


def sentence(room: str) -> str:
    """What the room's `__init__` says first."""
    first = (ast.get_docstring(tree("patchq." + room.replace("/", "."))) or "").split("\n\n")[0]
    return " ".join(first.split())


def _reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no other way of two arrows or more replaces."""
    below: dict[str, set[str]] = {}
    for room in TopologicalSorter(graph).static_order():
        below[room] = graph[room].union(*(below[other] for other in graph[room]))
    return {
        room: {one for one in others if not any(one in below[other] for other in others)}
        for room, others in graph.items()
    }


def arrows(graph: dict[str, set[str]]) -> str:
    """Who stands directly on whom, as Mermaid."""
    reduced = _reduced(graph)
    lines = [
        f"    {room} --> {other}"
        for room in reversed(ROOMS)
        for other in sorted(reduced[room], key=ROOMS.index, reverse=True)
    ]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def matrix(graph: dict[str, set[str]]) -> str:
    """Every import between two rooms: a row for who imports, a column for what."""
    width = max(map(len, ROOMS))
    rows = [" " * width + " " + " ".join(f"{at:2}" for at in range(1, len(ROOMS) + 1))]
    for at, room in enumerate(ROOMS):
        cells = [" x" if other in graph[room] else " ." for other in ROOMS[:at]]
        rows.append(f"{room:{width}} {' '.join([*cells, f'{at + 1:2}'])}")
    return "\n".join(["```text", *rows, "```"])


def listing() -> str:
    """A row for each room, the highest first, as the story is read."""
    rows = [f"| `{room}/` | {sentence(room)} |" for room in reversed(ROOMS)]
    return "\n".join(["| room | holds |", "|---|---|", *rows])


def decisions() -> str:
    """The pages of decisions by their titles."""
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    titles = {page: page.read_text(encoding="utf-8").split("\n", 1)[0] for page in pages}
    return "\n".join(f"- [{titles[page][2:]}](decisions/{page.name})" for page in pages)


PARTS: dict[str, Callable[[], str]] = {
    "rooms": listing,
    "picture": lambda: arrows(neighbours()),
    "imports": lambda: matrix(neighbours()),
    "decisions": decisions,
}
"""What stands on the page between the markers of each name."""


if __name__ == "__main__":
    rewrite(ARCHITECTURE, {name: drawn() for name, drawn in PARTS.items()})
