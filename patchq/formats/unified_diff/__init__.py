"""Unified diffs and the mails of `git format-patch`."""
