"""A room imports only from those before it in `ROOMS`; the core imports nothing outside itself."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from graphlib import TopologicalSorter

from tests.helpers.rooms import MODULES, PACKAGE, ROOMS, TIERS, imports, own_imports, room_of, tree

RANKS = {room: rank for rank, room in enumerate(ROOMS)}

# The one module, or package, that may import each of these.
SOLE_IMPORTERS = {
    "pygit2": "patchq.gate.git",
    "yaml": "patchq.core.text.yamlio",
    "watchdog": "patchq.gate.service.wake",
    "httpx2": "patchq.forge",
    "openai": "patchq.llm.chat",
    "anyio": "patchq.mcp",
    "mcp": "patchq.mcp",
    "mcp_types": "patchq.mcp",
    "jinja2": "patchq.page",
    "multipart": "patchq.page",
    "psycopg": "patchq.gate.queue.postgres",
    "pygments": "patchq.page.diff",
    "starlette": "patchq.page",
    "uvicorn": "patchq.gate.service.loopback",
}
SKINS = ("page", "mcp", "cli")
BELOW_THE_API = (
    "patchq.gate.git", "patchq.gate.hooks", "patchq.gate.land", "patchq.gate.pipeline",
    "patchq.gate.queue",
)  # fmt: skip
"""Rooms that skins reach by `patchq.gate.api`."""
# What reaches out of the process, or reads its clock, its environment or its luck.
IMPURE = {
    "datetime", "os", "random", "secrets", "shutil", "signal", "socket", "subprocess",
    "tempfile", "threading", "time",
}  # fmt: skip
SCREEN = 55
"""Lines of a function, at most."""
SHELF = 500
"""Lines of a file, at most."""
MOST_ENTRIES = 20
"""Of a room at one level; `cli` has one for each verb."""


def test_the_package_is_its_rooms() -> None:
    there = {path.name for path in PACKAGE.iterdir()} - {"__pycache__", "py.typed"}
    assert there == {*(room.split("/")[0] for room in ROOMS), "__init__.py", "__main__.py"}
    for tier in TIERS:
        inside = {path.stem for path in (PACKAGE / tier).iterdir()} - {"__pycache__"}
        rooms = {room.removeprefix(f"{tier}/") for room in ROOMS if room.startswith(f"{tier}/")}
        assert inside == {*rooms, "__init__"}


def test_modules_import_only_lower_rooms() -> None:
    rank = {module: RANKS[room] for module in MODULES if (room := room_of(module))}
    higher = [
        f"{module} imports {name}"
        for module in rank
        for name in own_imports(module)
        if rank.get(name, 0) > rank[module]
    ]
    assert not higher, higher


def test_rooms_can_be_overlooked() -> None:
    entries = Counter(
        path.parent
        for room in ROOMS
        if room != "cli"
        for path in (PACKAGE / room).rglob("*")
        if "__pycache__" not in path.parts
    )
    assert {place: count for place, count in entries.items() if count > MOST_ENTRIES} == {}


def test_imports_go_in_no_circle() -> None:
    # A package's own `__init__` counts only where it is imported by its name.
    graph = {module: own_imports(module) for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())


def test_libraries_have_one_importer() -> None:
    strangers = [
        f"{module} imports {name}; only {importer} may"
        for module in MODULES
        for name in imports(module)
        if (importer := SOLE_IMPORTERS.get(name.split(".")[0]))
        and not f"{module}.".startswith(f"{importer}.")
    ]
    assert not strangers, strangers


def test_skins_ask_the_gate() -> None:
    """A skin imports no other skin, no store and no ref."""
    wrong = []
    for module in MODULES:
        skin = room_of(module)
        if skin not in SKINS:
            continue
        others = tuple(f"patchq.{other}." for other in SKINS if other != skin)
        wrong += [
            f"{module} imports {name}"
            for name in own_imports(module)
            if name.startswith((*others, *BELOW_THE_API))
        ]
    assert not wrong, wrong


def test_core_is_pure() -> None:
    impure = [
        f"{module} imports {name}"
        for module in MODULES
        if module.startswith("patchq.core")
        for name in imports(module)
        if name.split(".")[0] in {*IMPURE, "patchq"} and not name.startswith("patchq.core")
    ]
    assert not impure, impure


def test_functions_fit_on_a_screen() -> None:
    sizes = {
        f"{module}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert {place: lines for place, lines in sizes.items() if lines > SCREEN} == {}


def test_no_file_holds_more_than_one_idea() -> None:
    sizes = {module: len(path.read_bytes().splitlines()) for module, path in MODULES.items()}
    assert {module: lines for module, lines in sizes.items() if lines > SHELF} == {}


def test_class_names_are_unique() -> None:
    homes = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert shared == {}


def test_nobody_reaches_into_anothers_privates() -> None:
    """`os._exit` alone is public and looks private."""
    reached = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute)
        and re.match("_(?!_.*__$)", node.attr)
        and ast.unparse(node.value) not in ("self", "cls")
    ]
    assert [place for place in reached if not place.endswith(" os._exit")] == []
