"""Pictures before and after, as files that a browser shows and runs nothing of."""

from __future__ import annotations

from posixpath import splitext

from msgspec import Struct

from patchq.core.model.values import FileChange
from patchq.core.text.binary_patch import blob_id
from patchq.gate.api import Gate
from patchq.gate.errors import UsageError

TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "avif": "image/avif", "svg": "image/svg+xml",
}  # fmt: skip
POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_MOST_BYTES = 8 << 20


class Picture(Struct, frozen=True):
    """One side of a picture."""

    side: str
    address: str
    size: str


def of(change: FileChange) -> list[Picture]:
    """Return both sides of a file that is a picture; nothing of others."""
    kind = splitext(change.path)[1][1:].lower()
    if kind not in TYPES or change.link:
        return []
    sides = {"before": change.before, "after": change.after}
    return [
        Picture(side, f"/blob/{blob_id(data)}?as={kind}", f"{len(data):,} bytes")
        for side, data in sides.items()
        if data is not None and len(data) <= _MOST_BYTES
    ]


def content(gate: Gate, oid: str, kind: str) -> tuple[bytes, str]:
    """Return a blob and its type; raises `UsageError` where it is no picture."""
    data = gate.blob(oid) if kind in TYPES else None
    if data is None or len(data) > _MOST_BYTES:
        raise UsageError("there is no such picture", "go back to the change")
    return data, TYPES[kind]
