"""The tools' `edits` as a response: one call of an editing tool for each, which patchq reads as it
reads those of any agent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from patchq.mcp.arguments import EditArguments

Call = Mapping[str, Any]


def response(edits: Iterable[EditArguments]) -> str:
    """The response that asks for the edits, in their order; equal edits give equal text."""
    calls = (json.dumps(call, ensure_ascii=False) for edit in edits for call in _calls(edit))
    return "[\n" + ",\n".join(calls) + "\n]\n"


def _calls(edit: EditArguments) -> Iterator[Call]:
    if edit.delete:
        yield {"name": "delete_file", "arguments": {"path": edit.path}}
    elif edit.new is not None and edit.old is None:
        yield {"name": "write", "arguments": {"file_path": edit.path, "content": edit.new}}
    elif edit.new is not None:
        arguments = {"file_path": edit.path, "old_string": edit.old, "new_string": edit.new}
        every = {"replace_all": True} if edit.replace_all else {}
        yield {"name": "replace", "arguments": {**arguments, **every}}
    if edit.rename_to:
        lines = ("Begin Patch", f"Update File: {edit.path}", f"Move to: {edit.rename_to}")
        patch = "".join(f"*** {line}\n" for line in (*lines, "End Patch"))
        yield {"name": "apply_patch", "arguments": {"input": patch}}
