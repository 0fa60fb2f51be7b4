"""The names of patchq's own refs: a proposal that waits, a batch that landed, one discarded."""

from __future__ import annotations

WAITING = "refs/patchq/waiting/"
"""A ref for every proposal, so that a branch which a person deleted is missed, and told from one
that was merged first."""


BATCHES = "refs/patchq/batches/"


DISCARDED = "refs/patchq/discarded/"
