"""The names of patchq's own branches and refs, which no other module spells.

A batch's branch is `patchq/<id>`.  Beside it, one ref tells that the batch waits for review
(`WAITING`), so that a branch which a person deleted is missed, and not taken for a merged one;
that it was accepted and waits for its train (`BOARDED`); or that it was discarded (`DISCARDED`).
One that landed has no ref: its commit's trailers are the record.
"""

from __future__ import annotations

OWN = "refs/patchq/"
BRANCHES = "refs/heads/patchq/"
WAITING = OWN + "waiting/"
DISCARDED = OWN + "discarded/"
BOARDED = OWN + "boarded/"  # the id follows behind each of these four
PUBLISHED = OWN + "published/"  # behind it the remote and the id: what was pushed for review
REMOTES = "refs/remotes/"  # behind it a remote and a branch: what was fetched of it
NOTES = "refs/notes/patchq"
# Places of the ids of batches with a commit that did not land.
BY_ID = (BRANCHES, WAITING, DISCARDED)


def branch(id: str) -> str:
    return f"patchq/{id}"


def fetched(remote: str | None) -> tuple[str, ...]:
    """Return the prefixes of refs of fetched proposals, without their ids."""
    return (f"{REMOTES}{remote}/patchq/",) if remote else ()


def is_branch(name: str) -> bool:
    return name.startswith("patchq/")
