"""Edits of files, as programs and tools hand them in, and the response that they make."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

_PATH = re.compile(r"[^\x00-\x1f\x7f]{1,1024}")


@dataclass(frozen=True)
class FileEdit:
    """One edit of a file; raises `ValueError` where it asks for nothing, or for two things."""

    path: str
    old: str | None = None
    """exact text of the file, once in it"""
    new: str | None = None
    """what takes its place; without `old`, the whole file"""
    replace_all: bool = False
    delete: bool = False
    """delete the file"""
    rename_to: str | None = None
    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    def __post_init__(self) -> None:
        paths = [self.path] if self.rename_to is None else [self.path, self.rename_to]
        if not all(map(_PATH.fullmatch, paths)):
            raise ValueError("expected a path of 1 to 1024 characters, none of them a control")
        if self.delete and (self.old is not None or self.new is not None or self.rename_to):
            raise ValueError("`delete` goes with `path` alone")
        if not self.delete and self.new is None and (self.old is not None or not self.rename_to):
            raise ValueError("expected `new`, `delete` or `rename_to`")
        if self.replace_all and not self.old:
            raise ValueError("`replace_all` needs `old`")

    def calls(self) -> Iterator[Mapping[str, Any]]:
        """Yield the calls of editing tools that do it."""
        if self.delete:
            yield {"name": "delete_file", "arguments": {"path": self.path}}
        elif self.new is not None and self.old is None:
            yield {"name": "write", "arguments": {"file_path": self.path, "content": self.new}}
        elif self.new is not None:
            given = {"file_path": self.path, "old_string": self.old, "new_string": self.new}
            every = {"replace_all": True} if self.replace_all else {}
            yield {"name": "replace", "arguments": {**given, **every}}
        if self.rename_to:
            lines = ("Begin Patch", f"Update File: {self.path}", f"Move to: {self.rename_to}")
            patch = "".join(f"*** {line}\n" for line in (*lines, "End Patch"))
            yield {"name": "apply_patch", "arguments": {"input": patch}}


def response(edits: Iterable[FileEdit]) -> str:
    """Return the edits as calls of an editing tool; equal edits give equal text."""
    calls = (json.dumps(call, ensure_ascii=False) for edit in edits for call in edit.calls())
    return "[\n" + ",\n".join(calls) + "\n]\n"
