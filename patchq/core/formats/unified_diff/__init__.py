"""Unified diffs and the mails of `git format-patch`; the format is in `grammar`."""
