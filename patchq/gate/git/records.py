"""The names of patchq's own branches and refs; nowhere else are they spelled.

A batch's branch is `patchq/<id>`.  Beside it, one ref tells that the batch waits for review
(`WAITING`), so that a branch which a person deleted is missed, and told from one that was merged
first; or that it was discarded (`DISCARDED`).  One that landed has no ref: its commit's trailers
tell that.
"""

from __future__ import annotations

OWN = "refs/patchq/"
BRANCHES = "refs/heads/patchq/"
WAITING = OWN + "waiting/"
DISCARDED = OWN + "discarded/"
"""The id follows behind each of these three."""
PUBLISHED = OWN + "published/"
"""Behind it the remote and the id: what `hooks/publish` pushed."""
REMOTES = "refs/remotes/"
"""Behind it a remote and a branch: what was fetched of it."""
NOTES = "refs/notes/patchq"
BY_ID = (BRANCHES, WAITING, DISCARDED)
"""Where the id of a batch with a commit that did not land is found."""


def branch(id: str) -> str:
    """The batch's branch, as git's commands name it."""
    return f"patchq/{id}"


def fetched(remote: str | None) -> tuple[str, ...]:
    """What stands before the ids of the proposals on a remote, as they were fetched."""
    return (f"{REMOTES}{remote}/patchq/",) if remote else ()


def is_branch(name: str) -> bool:
    """Whether a branch is one of a batch."""
    return name.startswith("patchq/")
