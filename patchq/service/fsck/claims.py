"""What stands beside the claims, and what crashes left: in the queue and in the git directory."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from patchq.git import refs, unwritten, worktree
from patchq.git.linklock import leftovers
from patchq.git.reffiles import heads
from patchq.hooks.jail.worktree import remove
from patchq.land.worker import TRIES
from patchq.pipeline.world import World
from patchq.queue import spool
from patchq.queue.directory import REPORT
from patchq.queue.spool import token_of
from patchq.report import document
from patchq.service.fsck.damage import Damage
from patchq.service.fsck.shapes import aside


def check(world: World, root: Path) -> Iterator[Damage]:
    """Everything about the claims of the queue at `root`, and what is of no use to anybody."""
    yield from _claims(root)
    for path, why, removal in _scraps(world, root):
        yield Damage("scrap", str(path), why, mend=removal)


def _claims(root: Path) -> Iterator[Damage]:
    """What stands beside the claims: a held batch whose response is gone can never be decided; one
    whose papers cannot be read is decided anew, under its id."""
    active = root / "active"
    for name in sorted(os.listdir(active)):
        path, paper = active / name, _read(active / name)
        token, held = token_of(name), name.endswith(".held")
        if token is None:
            continue
        gone = not (active / f"{token}.body").exists() and not any(active.glob(f"{token}/*"))
        if held and gone:
            yield Damage(
                "claim.empty",
                str(path),
                "a batch is held, and its response is gone",
                f"put the response there as {token}.body, or remove {name}",
            )
        elif not _is_sound(path, paper):
            yield Damage(
                "claim.broken",
                str(path),
                "what is noted of a claim is not whole, so its response is to be decided anew",
                mend=partial(aside, root, path),
            )
        elif held and paper:
            yield from _held_body(active, token, active / f"{paper['id']}{REPORT}")


def _is_sound(path: Path, paper: dict[str, Any] | None) -> bool:
    """Whether the paper beside a claim says what one of its kind has to: one that holds a batch
    says which, and since when, and that one has its report."""
    if path.name.endswith(".held"):
        id = str(paper and paper.get("id"))
        report = _read(path.with_name(f"{id}{REPORT}"))
        since = paper and isinstance(paper.get("since"), int | float)
        return bool(since and report and document.is_whole(report, id))
    if path.suffix == ".json":
        return paper is None or document.is_whole(paper, str(paper.get("id")))
    return path.suffix != ".asked" or paper is None or not paper.keys() < {"asked", "data"}


def _held_body(active: Path, token: str, path: Path) -> Iterator[Damage]:
    """Whether the copy of the response is what the batch was held on; the response as it came
    stands in the claim's directory."""
    report = spool.report(path.read_bytes()) if path.is_file() else None
    body, wanted = active / f"{token}.body", report and report["source"]["sha256"]
    if not body.is_file() or not report or _sum(body) == wanted:
        return
    came = next((path for path in active.glob(f"{token}/*") if _sum(path) == wanted), None)
    yield Damage(
        "body.differs",
        str(body),
        "the response is not the one that the report is on",
        "put the right one there",
        partial(_copy_again, active.parent, came, body) if came else None,
    )


def _copy_again(root: Path, came: Path, body: Path) -> None:
    aside(root, body)
    shutil.copyfile(came, body)


def _sum(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _read(path: Path) -> dict[str, Any] | None:
    return spool.decode(path.read_bytes()) if path.is_file() else None


def _scraps(world: World, root: Path) -> Iterator[tuple[Path, str, Callable[[], object]]]:
    """What is of no use to anybody, with why, and what removes it."""
    claims = {token_of(name) for name in os.listdir(root / "active")}
    for path in sorted((root / TRIES).iterdir()) if (root / TRIES).is_dir() else ():
        if path.name not in claims:
            why = "it counts the tries of a response that has its verdict"
            yield path, why, partial(path.unlink, missing_ok=True)
    commondir, objects = world.repo.commondir, world.repo.commondir / "objects"
    why = "a killed patchq left it, and with it perhaps a lock"
    for path in _orphans(commondir, ".ref"):
        yield path, why, partial(refs.clean, commondir)
    for gitdir, _ in heads(commondir):
        for path in _orphans(gitdir, ".index"):
            yield path, why, partial(worktree.recover, world.repo, wait=0.0)
    for path in _orphans(objects, ".objects"):
        # The file alone is how each process ends that wrote objects.
        if path.with_name(f"{path.name}.d").exists():
            yield path, why, partial(unwritten.clean, objects)
    for path in sorted((root / "hooks").glob("probe-*")):
        yield path, "a trial of a hook's jail", partial(remove, path)


def _orphans(gitdir: Path, suffix: str) -> Iterator[Path]:
    """Own files of dead owners in a git directory."""
    for orphan in leftovers(gitdir, suffix):
        os.close(orphan.fd)
        yield orphan.own
