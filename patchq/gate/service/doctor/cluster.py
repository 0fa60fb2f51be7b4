"""The cluster, where there is one: its database, its workers, and branches that nobody serves."""

from __future__ import annotations

from collections.abc import Iterator

from patchq.gate.errors import Fault
from patchq.gate.git.repository import Repository
from patchq.gate.service.doctor import Finding

_WAITS_SECONDS = 10.0
_APART_SECONDS = 30.0


def look(database: str, repo: Repository) -> Iterator[Finding]:
    """Everything about the cluster to whose database the connection string leads, as a machine with
    this clone sees it; the string may be empty, if none is named."""
    if not database:
        yield Finding(
            "cluster.database",
            "fatal",
            "the configuration has a cluster, and no database is named",
            "set PATCHQ_DATABASE, or `cluster.database` in the file (without a password)",
        )
        return
    try:
        from patchq.gate.queue.postgres import belonging
        from patchq.gate.queue.postgres.status import check_rights
        from patchq.gate.queue.postgres.status import look as ask
    except ImportError as error:
        message = f"the package {error.name!r} is not installed"
        yield Finding("cluster.database", "fatal", message, "pip install 'patchq[cluster]'")
        return
    try:
        state = ask(database)
        check_rights(database)
    except Fault as fault:
        yield Finding("cluster.database", "fatal", fault.message, fault.hint)
        return
    yield Finding("cluster.database", "ok", f"{state.database}, version {state.version}")
    if state.repository and not repo.shallow and not repo.exists(state.repository):
        yield Finding("cluster.repository", "fatal", *belonging.said(state.repository))
    if abs(state.ahead) > _APART_SECONDS:
        way = "ahead of" if state.ahead > 0 else "behind"
        message = f"this machine's clock is {abs(state.ahead):.0f} s {way} the database's"
        cure = "set it by NTP: a report has the time of the machine that decided"
        yield Finding("cluster.clock", "weaker", message, cure)
    cure = "start `patchq worker` where `cluster.lanes` lets it serve them"
    if unserved := [lane.lane for lane in state.unserved(_WAITS_SECONDS)]:
        message = f"responses wait for {', '.join(unserved)}, and no worker serves that"
        yield Finding("cluster.lanes", "todo", message, cure)
    elif not state.workers:
        yield Finding("cluster.lanes", "todo", "no worker is there", cure)
    else:
        names = ", ".join(f"{one.name} on {one.host}" for one in state.workers)
        yield Finding("cluster.lanes", "ok", f"workers: {names}")
