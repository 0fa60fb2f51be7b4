"""Tokens: each lets its caller alone take back a response."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

KEY = "mcp.key"  # the key of tokens; below the queue, so that they outlive the server
_KEY_BYTES = 32


def token(root: Path, sha256: str) -> str:
    """Return the token of a response, which shows that its bearer submitted these bytes."""
    return hmac.digest(_key(root), sha256.encode(), "sha256").hex()[:32]


def _key(root: Path) -> bytes:
    path = root / KEY
    with suppress(FileNotFoundError):
        if len(key := path.read_bytes()) == _KEY_BYTES:
            return key
    scratch = root / f".{KEY}.{secrets.token_hex(4)}"
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, secrets.token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(scratch, path)  # of two that make one, both use the first
    finally:
        os.close(fd)
        scratch.unlink()
    return path.read_bytes()
