"""After a crash: whether the ref of an intended verdict moved before the process died."""

from __future__ import annotations

from patchq import history, land, refs, report_md
from patchq.queue import Claim, Report
from patchq.repo import Repository
from patchq.world import World


def finish(claim: Claim, world: World) -> bool:
    """Publish the intended verdict of a recovered claim if its ref has moved; False when it has
    not, so that the response is to be decided anew.

    A reflog line that names the commit as the *old* value proves that the ref was there, and that
    somebody moved it on since: then the batch landed, and is not applied again.
    """
    told = claim.intended
    if told is None or not told["commit"]:
        return False
    if told["state"] == "proposed":
        if not _proposed(told, world):
            return False
    elif told["state"] != "applied" or not _applied(told, world):
        return False
    if told["state"] == "applied":
        log = f"patchq: {told['id']}: recovered"
        name = f"refs/patchq/batches/{told['id']}"
        refs.create(world.repo, name, told["commit"], log, world.identity())
    land.flush(world)
    world.queue.publish(claim, told, report_md.to_markdown(told))
    return True


def _proposed(told: Report, world: World) -> bool:
    name = f"refs/heads/patchq/{told['id']}"
    tip = world.repo.ref_target(name)
    if tip is not None:
        return bool(tip == told["commit"]) or world.repo.is_ancestor(told["commit"], tip)
    return was_at(world.repo, name, told["commit"])


def _applied(told: Report, world: World) -> bool:
    tip = world.repo.branch_tip(told["target"])
    if tip is None:
        return False
    if world.repo.resolve_commit(told["commit"]) and world.repo.is_ancestor(told["commit"], tip):
        return True
    if was_at(world.repo, f"refs/heads/{told['target']}", told["commit"]):
        return True
    source, base = told["source"]["sha256"], told["base"]["commit"]
    return history.landed_as(world.repo, told["id"], source, tip, base) is not None


def was_at(repo: Repository, ref: str, commit: str) -> bool:
    """Whether the ref's reflog shows that it was moved away from the commit."""
    log = repo.commondir / "logs" / ref
    if not log.is_file():
        return False
    with log.open("rb") as lines:
        return any(line.startswith(commit.encode()) for line in lines)
