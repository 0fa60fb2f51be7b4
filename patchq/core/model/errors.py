"""The error of a tree that cannot be read."""

from __future__ import annotations


class Unreadable(Exception):
    """A file or directory of a tree cannot be read."""
