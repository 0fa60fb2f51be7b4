"""Pull requests of proposals, as the last round with the forge found them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, ValidationError
from msgspec.json import decode, encode

from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.engine import StoreQueue, store_queue

_KEY = "forge.requests"


class ShownRequest(Struct, frozen=True):
    """The number and address of a request, and the accounts that approve of its content."""

    number: int
    url: str
    approved: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f", approved by {', '.join(self.approved)}" if self.approved else ""
        return f"#{self.number}{by}"


def shown(context: RepoContext) -> Mapping[str, ShownRequest]:
    """Return the requests by the ids of changes."""
    if not context.config.has_forge or not isinstance(context.queue, StoreQueue):
        return {}
    try:
        return decode(context.queue.store.recall(_KEY) or "{}", type=dict[str, ShownRequest])
    except ValidationError:
        return {}


def keep(context: RepoContext, found: Mapping[str, ShownRequest]) -> None:
    """Keep them for lists."""
    text, queue = encode(found).decode(), store_queue(context.queue).store
    if queue.recall(_KEY) != text:
        queue.remember(_KEY, text)
