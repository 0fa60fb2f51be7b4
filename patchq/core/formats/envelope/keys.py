"""The keys of the front matter, and the words that are slips of them."""

from __future__ import annotations

import re

KEYS = (
    "id", "target", "base", "message", "author", "agent", "model", "file", "retries",
    "depends_on", "whole_files", "bytes", "sha256",
)  # fmt: skip

_OTHER_WORDS = {"branch": "target", "commit": "base"}


def near(key: str) -> str | None:
    """The key of ours that a key is, but for a slip."""
    plain = _plain(key)
    ours = (name for name in KEYS if _one_slip(plain, _plain(name)))
    return _OTHER_WORDS.get(plain) or next(ours, None)


def _plain(key: str) -> str:
    return re.sub(r"[\W_]", "", key).lower()


def _one_slip(a: str, b: str) -> bool:
    """Whether two words are the same but for one letter, or two that changed places."""
    if abs(len(a) - len(b)) > 1 or min(len(a), len(b)) < 3:
        return a == b
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:
        return True
    rest, other = a[start:], b[start:]
    swapped = rest[:2] == other[1::-1] and rest[2:] == other[2:]
    return swapped or rest[1:] == other[1:] or rest[1:] == other or rest == other[1:]
