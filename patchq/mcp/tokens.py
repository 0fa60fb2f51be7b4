"""Tokens: each lets its caller alone take back a response."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

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
    with NamedTemporaryFile(dir=root, prefix=f".{KEY}.") as scratch:  # for its owner alone
        scratch.write(secrets.token_bytes(_KEY_BYTES))
        scratch.flush()
        with suppress(FileExistsError):
            os.link(scratch.name, path)  # of two that make one, both use the first
    return path.read_bytes()
