"""Landing small edits in a large repository, against `git am` and against libgit2 alone."""

from __future__ import annotations

from collections.abc import Iterator

from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from bench.speed.measure import floor, git_am, patchq
from bench.speed.repos import Site, changes, mailbox

FILES, RESPONSES, MAILS = 100_000, 500, 40
QUICK_FILES, QUICK_RESPONSES = 2_000, 100


def landing(ground: Ground) -> Iterator[Goal]:
    """The rate of `patchq run`, from its start to its end, over waiting responses; the target is
    not checked out.  Wall time, as what counts is that the disk is not waited for."""
    files, count = (QUICK_FILES, QUICK_RESPONSES) if ground.quick else (FILES, RESPONSES)
    site = Site(ground.room / "site", files, ground.home)
    made = changes(count, files)
    some, mails = made[:MAILS], site.room / "changes.mbox"
    wanted, mailed = site.wanted_tree(made), site.wanted_tree(some)
    mails.write_bytes(mailbox(some))
    to_am: list[float] = []
    to_floor: list[float] = []
    for _ in range(ground.rounds):
        each = patchq(ground.command, site, made, wanted).seconds / len(made)
        to_floor.append(floor(site, made, wanted, "fsync").seconds / len(made) / each)
        to_am.append(git_am(site, mails, some, mailed).seconds / len(some) / each)
    yield Goal(f"rate of landing / git am, {files:,} files", to_am, 30, True)
    yield Goal(f"rate of landing / libgit2 alone, flushed, {files:,} files", to_floor, 1.5, True)
