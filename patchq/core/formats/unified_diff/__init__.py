"""Unified diffs and the mails of `git format-patch`; the format is in `grammar`."""

from patchq.core.formats.unified_diff.grammar import FORMAT, INSTRUCTIONS, read

__all__ = ["FORMAT", "INSTRUCTIONS", "read"]
