"""The repository: what it is made of, whose it is, and which locks stand in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from patchq.config.schema import Config
from patchq.git import files
from patchq.git.repository import Repository
from patchq.service.doctor.finding import Finding, writable

_OLD_SECONDS = 3600
_EXTENSIONS = ("worktreeconfig", "relativeworktrees", "preciousobjects")


def look(repo: Repository, config: Config | None) -> Iterator[Finding]:
    """Everything about a repository that can be opened."""
    yield Finding(
        "repository.format", "ok", f"{repo.commondir} can be opened: {', '.join(_features(repo))}"
    )
    yield from _owner(repo)
    yield from _target(repo, config)
    yield from _links(repo)
    yield from _locks(repo.commondir)


def _features(repo: Repository) -> list[str]:
    """Words for people; what patchq does not work with, `Repository.open` refuses."""
    there = repo.commondir
    found = ["SHA-1", "refs in files"]
    found += ["bare"] if repo.bare else []
    found += ["several work trees"] if (there / "worktrees").is_dir() else []
    found += ["shallow"] if (there / "shallow").exists() else []
    found += ["alternates"] if (there / "objects/info/alternates").exists() else []
    return found + [key for key in _EXTENSIONS if repo.setting(f"extensions.{key}") == "true"]


def _owner(repo: Repository) -> Iterator[Finding]:
    owner = repo.commondir.stat().st_uid
    if owner == os.geteuid() or not os.geteuid():
        yield Finding("repository.owner", "ok", "the repository belongs to who runs this")
        return
    yield Finding(
        "repository.owner",
        "todo",
        f"the repository belongs to user {owner}, and this is user {os.geteuid()}: git trusts it "
        "by `safe.directory` alone, and files that the daemon makes may be closed to their owner",
        "run patchq as the repository's owner, or set core.sharedRepository=group for both",
    )


def _target(repo: Repository, config: Config | None) -> Iterator[Finding]:
    target = (config.target if config else None) or repo.head_branch()
    if target and repo.branch_tip(target):
        yield Finding("repository.target", "ok", f"batches are for {target}")
        return
    what = f"there is no branch {target!r}" if target else "HEAD is on no branch that has a commit"
    yield Finding(
        "repository.target",
        "fatal",
        f"{what}, so there is no default target",
        "check out a branch, or set `target` in the configuration",
    )


def _links(repo: Repository) -> Iterator[Finding]:
    """Refs are moved by a hard link and a rename, beside each ref."""
    own = repo.commondir / f"patchq-{os.getpid()}.probe"
    second = own.with_suffix(".linked")
    try:
        own.touch()
        os.link(own, second)
        os.rename(second, own.with_suffix(".renamed"))
    except OSError as error:
        yield Finding(
            "repository.links",
            "fatal",
            f"{repo.commondir} takes no files, hard links or renames: {error.strerror}",
            writable(
                error,
                repo.commondir,
                "let the user that runs patchq write there, on a file system with hard links",
            ),
        )
    else:
        yield Finding("repository.links", "ok", "hard links and renames work in the git directory")
    finally:
        for path in (own, second, own.with_suffix(".renamed")):
            with suppress(OSError):
                path.unlink()


def _locks(commondir: Path) -> Iterator[Finding]:
    found = list(_standing_locks(commondir))
    for lock in found:
        try:
            age = max(0, round(time.time() - lock.lstat().st_mtime))
        except FileNotFoundError:
            continue  # it was released meanwhile
        owner = _owner_of(commondir, lock)
        if owner == "alive":
            continue
        if owner == "dead":
            yield Finding(
                "repository.locks",
                "weaker",
                f"{lock} was left by a patchq that died (it is a link to its own file)",
                "nothing: the next `patchq watch` or `patchq run` removes it at its start",
            )
        elif age < _OLD_SECONDS:
            yield Finding(
                "repository.locks",
                "weaker",
                f"{lock} is held by another program since {age} s; batches for it wait",
                f"wait; if no git runs in this repository any more: rm '{lock}'",
            )
        else:
            yield Finding(
                "repository.locks",
                "todo",
                f"{lock} stands since {age // 60} min and is not patchq's; batches for it wait",
                f"if no git runs in this repository any more: rm '{lock}'",
            )
    if not found:
        yield Finding("repository.locks", "ok", "no lock stands")


def _standing_locks(commondir: Path) -> Iterator[Path]:
    """Git's lock files, of refs, of what all of them are in, and of each work tree."""
    yield from sorted(commondir.glob("*.lock"))
    yield from sorted(commondir.glob("worktrees/*/*.lock"))
    for where, _, names in os.walk(commondir / "refs"):
        yield from sorted(Path(where, name) for name in names if name.endswith(".lock"))


def _owner_of(commondir: Path, lock: Path) -> Literal["alive", "dead"] | None:
    """Whether the lock is a link to a file of patchq's, and its owner lives; see `linklock`."""
    for own in commondir.glob("patchq-*"):
        with suppress(FileNotFoundError):
            if not os.path.samestat(own.lstat(), lock.lstat()):
                continue
            with files.opened(own, os.O_RDONLY | os.O_NOFOLLOW) as fd:
                return "dead" if files.flock(fd, shared=True) else "alive"
    return None
