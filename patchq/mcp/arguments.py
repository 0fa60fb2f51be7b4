"""Types of the tools' arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from patchq.core.model.names import batch_id, suggestion
from patchq.core.text.quote import clip, fence
from patchq.gate.api.submitting import Change, FileEdit
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
Edits = Annotated[list[FileEdit] | None, Field(min_length=1)]
Response = Annotated[str, Field(description="edits in any form that patchq reads")]
Base = Annotated[Word | None, Field(description="the commit you read the files from")]
Target = Annotated[Word | None, Field(description="a branch; else the configured one")]


class CommentAnswer(TypedDict):
    """Words on the comment of this id."""

    comment: Word
    text: Word


def change_of(edits: list[FileEdit] | None, response: str) -> Change:
    """Return the edits or the response; raises `UsageError` for both, or neither."""
    if bool(edits) == bool(response):
        raise UsageError("expected one of `response` and `edits`, and it not empty")
    return edits or response


EXAMPLE = {"path": "PATH", "old": "exact text of the file, once in it", "new": "what replaces it"}


def how_to_submit(base: str) -> str:
    """Return how to change the files of a prompt, by the arguments of `submit`."""
    shown = fence(json.dumps({"base": base, "edits": [EXAMPLE]}, indent=1), "json")
    return (
        f"## How to answer\n\nCall `submit` with these arguments, or `check` to try:\n\n{shown}\n\n"
        "An edit with `new` alone has the whole text of its file; `delete` and `rename_to` do what "
        "they say. Change no other file."
    )


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
    if flaw["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = names if len(flaw["loc"]) == 1 else FileEdit.__annotations__
        meant = suggestion(str(flaw["loc"][-1])[:100], known)
        return "; ".join(filter(None, (f"there is no argument `{place}`", meant)))
    message = flaw["msg"].removeprefix("Value error, ")
    return f"`{place}`: {message}" if place else str(message)
