"""The import graph is linear: a room knows only those before it in `LAYERS`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "patchq"

LAYERS = (
    "model", "text", "config", "report", "git", "queue", "formats", "resolve", "plan", "hooks",
    "llm", "pipeline", "land", "review", "service", "cli",
)  # fmt: skip
"""The rooms, lowest first: a module imports from its own room and from those before it."""
RANKS = {room: rank for rank, room in enumerate(LAYERS)}
PURE = {"model", "text", "formats", "resolve", "plan"}
"""The core: bytes and frozen values; no files, no processes, no clock."""

# The one module, or package, that may import each of these.
SOLE_IMPORTERS = {
    "pygit2": "patchq.git",
    "yaml": "patchq.text.yamlio",
    "watchdog": "patchq.service.doorbell",
}
# What reaches out of the process, or reads its clock, its environment or its luck.
IMPURE = {
    "datetime", "os", "random", "secrets", "shutil", "signal", "socket", "subprocess",
    "tempfile", "threading", "time",
}  # fmt: skip
SCREEN = 55
"""Lines of a function, at most."""
MOST_ENTRIES = 20
"""Of a room at one level; `cli` has one for each verb."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str | None:
    """The room that holds the module; None for the package itself and `__main__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def imports(module: str) -> Iterator[str]:
    """The full names of everything that the module imports, wherever in it."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
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
    return {name for name in imports(module) if name.split(".")[0] == "patchq"} - {module}


def test_the_package_is_its_rooms() -> None:
    there = {path.name for path in PACKAGE.iterdir()} - {"__pycache__", "py.typed"}
    assert there == {*LAYERS, "__init__.py", "__main__.py"}


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_only_lower_rooms(module: str) -> None:
    room = room_of(module)
    if room is None:
        return
    for name in own_imports(module):
        other = room_of(name)
        if other is not None:
            assert RANKS[other] <= RANKS[room], f"{module} imports {name}"


@pytest.mark.parametrize("room", [room for room in LAYERS if room != "cli"])
def test_room_can_be_overlooked(room: str) -> None:
    for place in [PACKAGE / room, *(PACKAGE / room).rglob("*/")]:
        entries = [path.name for path in place.iterdir() if path.name != "__pycache__"]
        assert len(entries) <= MOST_ENTRIES, f"{place} has {len(entries)} entries"


def test_imports_go_in_no_circle() -> None:
    # A package's own `__init__` counts only where it is imported by its name.
    graph = {module: own_imports(module) for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", MODULES)
def test_libraries_have_one_importer(module: str) -> None:
    for name in imports(module):
        importer = SOLE_IMPORTERS.get(name.split(".")[0], module)
        inside = module == importer or module.startswith(f"{importer}.")
        assert inside, f"{module} imports {name}; only {importer} may"


@pytest.mark.parametrize("module", MODULES)
def test_core_is_pure(module: str) -> None:
    if room_of(module) in PURE:
        assert {name.split(".")[0] for name in imports(module)}.isdisjoint(IMPURE), module


@pytest.mark.parametrize("module", MODULES)
def test_functions_fit_on_a_screen(module: str) -> None:
    tree = ast.parse(MODULES[module].read_bytes(), module)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= SCREEN, f"{module}:{node.lineno} {node.name} has {lines} lines"
