"""The last round with the forge: pull requests of proposals, and what is left of its token."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, ValidationError
from msgspec.json import decode, encode

from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.shelf import Shelf

_LAST = "round"


class ShownRequest(Struct, frozen=True):
    """A request: its number and address, who approves of its content, and unsent comments."""

    number: int
    url: str
    approved: tuple[str, ...] = ()
    comments: int = 0

    def __str__(self) -> str:
        by = f", approved by {', '.join(self.approved)}" if self.approved else ""
        plural = "" if self.comments == 1 else "s"
        count = f", {self.comments} comment{plural}" if self.comments else ""
        return f"#{self.number}{by}{count}"


class ForgeRound(Struct, frozen=True):
    """A round: its time, the requests by the ids of changes, and the end of the token, or 0."""

    at: float = 0.0
    requests: Mapping[str, ShownRequest] = {}
    expires: float = 0.0
    left: str = ""
    """Requests that the forge takes until its limit is renewed."""


def last_round(root: Path) -> ForgeRound:
    """Return the last round of the queue at `root`."""
    with suppress(ValidationError):
        return decode(Shelf(root, "forge").get(_LAST) or b"{}", type=ForgeRound)
    return ForgeRound()


def shown(context: RepoContext) -> Mapping[str, ShownRequest]:
    """Return the requests by the ids of changes, where there is a forge."""
    return last_round(context.queue_root).requests if context.config.has_forge else {}


def keep(root: Path, made: ForgeRound) -> None:
    """Keep a round for lists, and for `patchq doctor`."""
    Shelf(root, "forge").put(_LAST, encode(made))
