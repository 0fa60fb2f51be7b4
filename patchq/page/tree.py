"""The files of a change as a tree: folders that hold one folder alone are joined with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_GENERATED = re.compile(
    r"(^|/)(vendor|node_modules|third_party|dist)/|\.(lock|min\.js|min\.css|map|snap)$"
    r"|(^|/)(package-lock\.json|pnpm-lock\.yaml|go\.sum|Cargo\.lock)$|_pb2\.py$|\.pb\.go$"
)


def is_generated(path: str) -> bool:
    """Return True for a lock file, vendored code and the like, by their usual names."""
    return bool(_GENERATED.search(path))


def tree_of(files: Mapping[str, object]) -> dict[str, Any]:
    """Return values by their paths as a tree of mappings; the names of folders end in a slash."""
    root: dict[str, Any] = {}
    for path, value in files.items():
        *folders, name = path.split("/")
        here = root
        for folder in folders:
            here = here.setdefault(f"{folder}/", {})
        here[name] = value
    return _joined(root)


def _joined(tree: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inside in sorted(tree.items(), key=lambda item: not item[0].endswith("/")):
        while isinstance(inside, dict) and len(inside) == 1 and next(iter(inside)).endswith("/"):
            ((folder, inside),) = inside.items()
            name += folder
        found[name] = _joined(inside) if name.endswith("/") else inside
    return found
