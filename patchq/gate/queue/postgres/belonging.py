"""The repository whose responses are in the tables.

Addresses of a remote differ from machine to machine, and branches have the same names everywhere.
So a repository is known by the commit with which its default target begins: every whole clone has
it, and a response for another repository is not taken in here.
"""

from __future__ import annotations

from patchq.gate.errors import UsageError
from patchq.gate.git.repository import Repository
from patchq.gate.queue.postgres.database import DatabaseServer

_ROOT = "repository"


def check(database: DatabaseServer, repo: Repository, tip: str | None) -> None:
    """Raise `UsageError` where the tables are another repository's; note whose they are where they
    have no owner yet.  `tip` is the default target's, if there is one.  A shallow clone cannot
    tell."""
    if repo.shallow:
        return
    root = noted(database)
    if root is None and tip is not None:
        database.run(
            "insert into meta (key, value) values (:key, :root) on conflict do nothing",
            key=_ROOT,
            root=repo.root(tip),
        )
        root = noted(database)
    if root is not None and not repo.exists(root):
        raise UsageError(*foreign(root))


def noted(database: DatabaseServer) -> str | None:
    """Return the commit with which the default target begins, if any machine has noted it."""
    return database.recall(_ROOT)


def foreign(root: str) -> tuple[str, str]:
    """Return the message and the cure for a clone without that commit."""
    return (
        "the database carries the queue of another repository, whose history begins with "
        f"{root[:12]}, which is not here",
        "give each repository a database, or a schema, of its own (docs/cluster.md)",
    )
