"""Opening a response that is no text but the JSON of an API's answer, or of an agent's events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from patchq.core.formats.envelope import streams
from patchq.core.formats.envelope.api_json import ApiAnswer, Unopened, open_api
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError, Node


def open_answer(text: str) -> ApiAnswer | None:
    """What `text` as a whole is the answer of; None if it is anything else."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        first, values, listed = _values(text)
    except JsonError:
        return None
    if first is None:
        return None
    if not streams.is_event(first):
        try:
            return open_api(values, listed=listed)
        except JsonError:
            return None
    try:
        return streams.open_stream(values)
    except JsonError as error:
        if error.cut:
            return ApiAnswer((), unreadable=streams.cut(error.line, "within an event"))
        message = f"the stream cannot be read, column {error.column}: {error}"
        return ApiAnswer((), unreadable=Unopened(error.line, message, streams.WHOLE))


def _values(text: str) -> tuple[Node | None, Iterator[Node], bool]:
    """The first value, and all of them as they are read, which one list may hold: a text of other
    JSON costs no more than its first value.  Raises `JsonError`."""
    values = jsonish.parse_each(text)
    first = next(values)
    if not isinstance(first.value, list):
        return first, chain((first,), values), False
    if next(values, None) is not None:
        return None, values, False
    items: list[Node] = first.value
    return (items[0] if items else None), iter(items), True
