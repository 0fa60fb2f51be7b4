"""Types of the tools' arguments, and the edits that they take, as a response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from patchq.core.model.names import batch_id, suggestion
from patchq.core.text.quote import clip, fence
from patchq.gate.errors import UsageError

LONGEST_WAIT_SECONDS = 600.0
_MOST_FLAWS = 5


def _one_line(text: str) -> str:
    """Return a path or a name; a line end in it would begin another key."""
    if not text or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("expected text, not empty, and without control characters")
    return text


def _plain_id(text: str) -> str:
    if batch_id(text) != text:
        raise ValueError("no change has such an id")
    return text


Path = Annotated[str, AfterValidator(_one_line), Field(max_length=1024)]
Word = Annotated[str, AfterValidator(_one_line), Field(max_length=500)]
ChangeId = Annotated[str, AfterValidator(_plain_id)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)]


class EditArguments(BaseModel):
    """One edit of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    old: Annotated[str | None, Field(description="exact text of the file, once in it")] = None
    new: Annotated[
        str | None, Field(description="what takes its place; without `old`, the whole file")
    ] = None
    replace_all: bool = False
    delete: Annotated[bool, Field(description="delete the file")] = False
    rename_to: Path | None = None

    @model_validator(mode="after")
    def _asks_for_one_thing(self) -> EditArguments:
        if self.delete and (self.old is not None or self.new is not None or self.rename_to):
            raise ValueError("`delete` goes with `path` alone")
        if not self.delete and self.new is None and (self.old is not None or not self.rename_to):
            raise ValueError("expected `new`, `delete` or `rename_to`")
        if self.replace_all and not self.old:
            raise ValueError("`replace_all` needs `old`")
        return self


class AnswerArguments(BaseModel):
    """Words on the comment of this id."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    comment: Word
    text: Word


def response(edits: Iterable[EditArguments]) -> str:
    """Return the edits as calls of an editing tool; equal edits give equal text."""
    calls = (json.dumps(call, ensure_ascii=False) for edit in edits for call in _calls(edit))
    return "[\n" + ",\n".join(calls) + "\n]\n"


EXAMPLE = {"path": "PATH", "old": "exact text of the file, once in it", "new": "what replaces it"}


def how_to_submit(base: str) -> str:
    """Return how to change the files of a prompt, by the arguments of `submit`."""
    shown = fence(json.dumps({"base": base, "edits": [EXAMPLE]}, indent=1), "json")
    return (
        f"## How to answer\n\nCall `submit` with these arguments, or `check` to try:\n\n{shown}\n\n"
        "An edit with `new` alone has the whole text of its file; `delete` and `rename_to` do what "
        "they say. Change no other file."
    )


def _calls(edit: EditArguments) -> Iterator[Mapping[str, Any]]:
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


def usage_error(tool: str, names: Iterable[str], flaws: Sequence[Mapping[str, Any]]) -> UsageError:
    """Return the error that names what is wrong with a tool's arguments."""
    names = list(names)
    wrong = [_flaw(flaw, names) for flaw in flaws]
    more = f"; and {len(wrong) - _MOST_FLAWS} more" if len(wrong) > _MOST_FLAWS else ""
    return UsageError(
        f"{tool}: {'; '.join(wrong[:_MOST_FLAWS])}{more}", f"it takes {', '.join(names)}"
    )


def _flaw(flaw: Mapping[str, Any], names: Iterable[str]) -> str:
    place = clip(".".join(map(str, flaw["loc"])), 100)
    if flaw["type"] == "extra_forbidden":
        known = names if len(flaw["loc"]) == 1 else EditArguments.model_fields
        meant = suggestion(str(flaw["loc"][-1])[:100], known)
        return "; ".join(filter(None, (f"there is no argument `{place}`", meant)))
    message = flaw["msg"].removeprefix("Value error, ")
    return f"`{place}`: {message}" if place else str(message)
