"""The marks of proposals that another machine made: what `status` and the rest look for here.

A mark says that a batch waits, and at which commit (`records.WAITING`).  Whoever proposes makes it
in his own repository; where reports come from elsewhere, it follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from patchq.git import records, refs
from patchq.model.errors import Unreachable
from patchq.model.report import Report, has_commit
from patchq.pipeline.world import World


def follow(world: World, reports: Sequence[Report]) -> None:
    """Have the marks as these reports say."""
    wanted = {
        report["id"]: report["commit"]
        for report in reports
        if report["state"] == "proposed" and has_commit(report)
    }
    if wanted:
        with suppress(Unreachable):  # the mark comes with the next change
            world.branches.refresh()
    for report in reports:
        name, commit = records.WAITING + report["id"], wanted.get(report["id"])
        now = world.repo.ref_target(name)
        if commit is None and now:
            refs.delete(world.repo, name, now)
        elif commit and commit != now and world.repo.resolve_commit(commit):
            log = f"patchq: {report['id']}: proposed"
            refs.move(world.repo, name, now, commit, log, world.identity())
