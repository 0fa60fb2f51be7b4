"""A room imports only from those before it in `ROOMS`; the core imports nothing outside itself."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter, defaultdict
from graphlib import TopologicalSorter

import pytest

from tests.helpers.rooms import (
    MODULES,
    PACKAGE,
    ROOMS,
    TIERS,
    imports,
    own_imports,
    room_of,
    tree,
)

RANKS = {room: rank for rank, room in enumerate(ROOMS)}

# The one module, or package, that may import each of these.
SOLE_IMPORTERS = {
    "pygit2": "patchq.gate.git",
    "yaml": "patchq.core.text.yamlio",
    "watchdog": "patchq.gate.service.doorbell",
    "httpx2": "patchq.forge",
    "openai": "patchq.llm.completions",
    "anyio": "patchq.mcp",
    "mcp": "patchq.mcp",
    "mcp_types": "patchq.mcp",
    "jinja2": "patchq.page",
    "multipart": "patchq.page",
    "psycopg": "patchq.gate.queue.postgres",
    "pygments": "patchq.gate.api.syntax",
    "starlette": "patchq.page",
    "uvicorn": "patchq.gate.service.loopback",
}
SKINS = ("page", "mcp", "cli")
BELOW_THE_API = (
    "patchq.gate.git", "patchq.gate.hooks", "patchq.gate.land", "patchq.gate.pipeline",
    "patchq.gate.queue",
)  # fmt: skip
"""Rooms that skins reach by `patchq.gate.api`."""
DEEPER = {
    f"patchq.cli.{name}" for name in (
        "cluster", "completion", "confirm", "feeding", "hooks", "init", "setup", "setup.changes",
        "stop", "tenure", "watch", "worker",
    )
}  # fmt: skip
"""Modules of skins that set up, or run, a service; there may only be fewer."""
# What reaches out of the process, or reads its clock, its environment or its luck.
IMPURE = {
    "datetime", "os", "random", "secrets", "shutil", "signal", "socket", "subprocess",
    "tempfile", "threading", "time",
}  # fmt: skip
SCREEN = 55
"""Lines of a function, at most."""
SHELF = 500
"""Lines of a file; more of them are a warning."""
MOST_ENTRIES = 20
"""Of a room at one level; `cli` has one for each verb."""


def test_the_package_is_its_rooms() -> None:
    there = {path.name for path in PACKAGE.iterdir()} - {"__pycache__", "py.typed"}
    assert there == {*(room.split("/")[0] for room in ROOMS), "__init__.py", "__main__.py"}
    for tier in TIERS:
        inside = {path.stem for path in (PACKAGE / tier).iterdir()} - {"__pycache__"}
        rooms = {room.removeprefix(f"{tier}/") for room in ROOMS if room.startswith(f"{tier}/")}
        assert inside == {*rooms, "__init__"}


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_only_lower_rooms(module: str) -> None:
    room = room_of(module)
    if room is None:
        return
    for name in own_imports(module):
        other = room_of(name)
        if other is not None:
            assert RANKS[other] <= RANKS[room], f"{module} imports {name}"


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_room_can_be_overlooked(room: str) -> None:
    entries = Counter(
        path.parent for path in (PACKAGE / room).rglob("*") if "__pycache__" not in path.parts
    )
    assert {place: count for place, count in entries.items() if count > MOST_ENTRIES} == {}


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


@pytest.mark.parametrize("module", [name for name in MODULES if room_of(name) in SKINS])
def test_skins_ask_the_gate(module: str) -> None:
    """A skin imports no other skin and, but for those that are listed, no store and no ref."""
    others = tuple(f"patchq.{skin}." for skin in SKINS if skin != room_of(module))
    inside = () if module in DEEPER else BELOW_THE_API
    for name in own_imports(module):
        started = room_of(module) == "cli" and name in ("patchq.page", "patchq.mcp")
        assert not name.startswith(others) or started, f"{module} imports {name}"
        assert not name.startswith(inside), f"{module} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_core_is_pure(module: str) -> None:
    if module.startswith("patchq.core"):
        assert {name.split(".")[0] for name in imports(module)}.isdisjoint(IMPURE), module
        assert [name for name in own_imports(module) if not name.startswith("patchq.core")] == []


@pytest.mark.parametrize("module", MODULES)
def test_functions_fit_on_a_screen(module: str) -> None:
    for node in ast.walk(tree(module)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= SCREEN, f"{module}:{node.lineno} {node.name} has {lines} lines"


@pytest.mark.filterwarnings("default:.* lines:UserWarning")
@pytest.mark.parametrize("module", MODULES)
def test_long_files_are_told(module: str) -> None:
    lines = len(MODULES[module].read_bytes().splitlines())
    if lines > SHELF:
        warnings.warn(f"{module} has {lines} lines", stacklevel=1)
    assert lines <= 2 * SHELF, f"{module} has {lines} lines: surely more than one idea"


def test_class_names_are_unique() -> None:
    homes = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert shared == {}


@pytest.mark.parametrize("module", MODULES)
def test_nobody_reaches_into_anothers_privates(module: str) -> None:
    """`os._exit` alone is public and looks private."""
    reached = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute)
        and re.match("_(?!_.*__$)", node.attr)
        and ast.unparse(node.value) not in ("self", "cls")
    ]
    assert [place for place in reached if not place.endswith(" os._exit")] == []
