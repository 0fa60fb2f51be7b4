"""The import graph is linear: a module knows only what stands above it in `LAYERS`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "patchq"

# Lowest first.  A name covers the module, or the package and all in it; the longest name counts.
# Names on one line may import each other, as long as no circle comes of it.
PURE = (
    ("patchq",),  # the version alone
    ("errors", "concern"),
    ("ops",),
    ("model",),
    ("asked",),
    ("yamlio",),
    ("names",),
    ("haystack",),
    ("grammars", "text", "lcs", "quote", "jsonish"),
    ("policy", "codes", "diff", "message"),
    ("envelope",),
    ("formats",),
    ("resolve",),
    ("conflicts", "files", "apply", "guards", "precedence", "escapes", "syntax", "carry_lines"),
    ("llm.client", "llm.merge", "llm.places", "llm.questions"),
)
EFFECTS = (
    ("config_schema",),
    ("config",),
    ("identity", "reffiles", "linklock", "objects", "packedrefs"),
    ("repo",),
    ("refs", "checkout"),
    ("backup",),
    ("worktree",),
    ("queue",),
    ("report_md", "secrecy"),
    ("report",),
    ("history", "inverse", "overlaps"),
    ("move",),
    ("carry_files",),
    ("hooks",),
    ("telling", "logs"),
    ("llm.cache", "llm.chat"),
    ("world",),
    ("chosen", "land", "rewriting"),
    ("notes",),
    ("forgotten",),
    ("dependencies", "mode", "selection"),
    ("llm",),
    ("bases",),
    ("stages",),
    ("fixes",),
    ("checking",),
    ("pipeline",),
    ("recovery", "supersede"),
    ("observed", "pending"),
    ("waiting",),
    ("rebuilt",),
    ("review",),
    ("asking",),
    ("worker",),
    ("tally",),
    ("retention", "prometheus"),
    ("checkup",),
    ("fsck",),
    ("revert", "retry"),
    ("daemon",),
    ("cli",),
    ("__main__",),
)
LAYERS = PURE + EFFECTS
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# The one module, or package, that may import each of these.
SOLE_IMPORTERS = {
    "pygit2": "patchq.repo",
    "yaml": "patchq.yamlio",
    "watchdog": "patchq.daemon.watch",
}
# What reaches out of the process, or reads its clock, its environment or its luck.
IMPURE = {
    "datetime", "os", "random", "secrets", "shutil", "signal", "socket", "subprocess",
    "tempfile", "threading", "time",
}  # fmt: skip
MAX_LINES = 300


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def layer_of(module: str) -> str | None:
    """The entry of `LAYERS` that covers the module, or None."""
    if module == "patchq":
        return module
    parts = module.split(".")[1:]
    covering = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in covering if name in RANKS), None)


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


@pytest.mark.parametrize("module", MODULES)
def test_module_has_a_layer(module: str) -> None:
    assert layer_of(module) is not None, f"{module}: give it a place in LAYERS"


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_only_lower_layers(module: str) -> None:
    layer = layer_of(module)
    assert layer is not None
    for name in own_imports(module):
        other = layer_of(name)
        assert other is not None, f"{module} imports {name}, which has no layer"
        assert RANKS[other] <= RANKS[layer], f"{module} ({layer}) imports {name} ({other})"


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
    layer = layer_of(module)
    assert layer is not None
    if RANKS[layer] < len(PURE):
        assert {name.split(".")[0] for name in imports(module)}.isdisjoint(IMPURE), module


@pytest.mark.parametrize("module", MODULES)
def test_module_is_short(module: str) -> None:
    lines = MODULES[module].read_text(encoding="utf-8").count("\n")
    assert lines < MAX_LINES, f"{module} has {lines} lines"
