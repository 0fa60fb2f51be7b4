"""The names of patchq's own branches and refs; nowhere else are they spelled.

A batch's branch is `patchq/<id>`.  Beside it, one ref tells what became of the batch: that it waits
for review, so that a branch which a person deleted is missed, and told from one that was merged
first; that it landed; or that it was discarded.
"""

from __future__ import annotations

OWN = "refs/patchq/"
BRANCHES = "refs/heads/patchq/"
WAITING = OWN + "waiting/"
BATCHES = OWN + "batches/"
DISCARDED = OWN + "discarded/"
NOTES = "refs/notes/patchq"
BY_ID = (BRANCHES, WAITING, BATCHES, DISCARDED)
"""Where an id that was ever given to a commit is found, whatever the queue remembers."""


def branch(id: str) -> str:
    """The batch's branch, as git's commands name it."""
    return f"patchq/{id}"


def is_branch(name: str) -> bool:
    """Whether a branch is one of a batch."""
    return name.startswith("patchq/")


def branch_ref(id: str) -> str:
    """The ref of the batch's branch."""
    return BRANCHES + id


def waiting(id: str) -> str:
    """The mark that the batch waits for review, on its commit."""
    return WAITING + id


def landed(id: str) -> str:
    """The record of a batch that landed, on its commit."""
    return BATCHES + id


def discarded(id: str) -> str:
    """Where the commit of a batch that was discarded stays."""
    return DISCARDED + id
