"""The names of patchq's own branches and refs; nowhere else are they spelled.

A batch's branch is `patchq/<id>`.  Beside it, one ref tells what became of the batch: that it waits
for review (`WAITING`), so that a branch which a person deleted is missed, and told from one
that was merged first; that it landed (`LANDED`); or that it was discarded (`DISCARDED`).
"""

from __future__ import annotations

OWN = "refs/patchq/"
BRANCHES = "refs/heads/patchq/"
WAITING = OWN + "waiting/"
LANDED = OWN + "batches/"
DISCARDED = OWN + "discarded/"
"""The id follows behind each of these four."""
PUBLISHED = OWN + "published/"
"""Behind it the remote and the id: what `hooks/publish` pushed."""
REMOTES = "refs/remotes/"
"""Behind it a remote and a branch: what was fetched of it."""
NOTES = "refs/notes/patchq"
BY_ID = (BRANCHES, WAITING, LANDED, DISCARDED)
"""Where an id that was ever given to a commit is found, whatever the queue remembers."""


def branch(id: str) -> str:
    """The batch's branch, as git's commands name it."""
    return f"patchq/{id}"


def fetched(remote: str | None) -> tuple[str, ...]:
    """What stands before the ids of the proposals on a remote, as they were fetched."""
    return (f"{REMOTES}{remote}/patchq/",) if remote else ()


def is_branch(name: str) -> bool:
    """Whether a branch is one of a batch."""
    return name.startswith("patchq/")
