"""Checks of the repository: its owner, refs, packs and locks, its signing, and its remote."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from patchq.gate.config.schema import Config
from patchq.gate.errors import CannotSign, Fault
from patchq.gate.git.lock_files import owner_of
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from patchq.gate.git.signing import Signer
from patchq.gate.hooks import configured, dry_start, install
from patchq.gate.pipeline.context import GateRules, branches_of
from patchq.gate.pipeline.session import DEFAULT_IDENTITY
from patchq.gate.service.check import Check, Finding, Place, try_out, work_trees

_OLD_SECONDS = 3600


def _owner(place: Place) -> Iterator[Finding]:
    owner = place.repo.commondir.stat().st_uid
    if os.geteuid() not in (0, owner):
        yield Finding(
            "repository.owner",
            "todo",
            f"the repository belongs to user {owner}, and this is user {os.geteuid()}: git trusts "
            "it by `safe.directory` alone, and files that the daemon makes may be closed to their "
            "owner",
            "run patchq as the owner, or set core.sharedRepository=group for both",
        )


def _target(place: Place) -> Iterator[Finding]:
    target, repo = place.target, place.repo
    if not target or place.config.landing.remote:
        return  # `config` and `landing.remote` say so
    if repo.branch_tip(target) is None:
        first = not repo.refs("refs/heads/")
        yield Finding(
            "repository.target",
            "fatal",
            f"{target!r} has no commit, so nothing can land",
            "make a first commit" if first else "create it, or set another `target`",
        )


def _signing(place: Place) -> Iterator[Finding]:
    signer = Signer(place.repo, place.config.commit.sign)
    signs = signer.try_out(place.repo.identity() or Identity(*DEFAULT_IDENTITY))
    yield Finding("git.signing", "ok", f"commits are {'' if signs else 'not '}signed")


def _locks(place: Place) -> Iterator[Finding]:
    top = place.repo.commondir
    globs = ("*.lock", "worktrees/*/*.lock", "refs/**/*.lock")
    for lock in (lock for glob in globs for lock in sorted(top.glob(glob))):
        with suppress(FileNotFoundError):  # it was released meanwhile
            owner = owner_of(top, lock)
            age = max(0, round(time.time() - lock.lstat().st_mtime))
            if owner == "dead":
                yield Finding(
                    "repository.locks",
                    "weaker",
                    f"{lock} was left by a patchq that died (it is a link to its own file)",
                    "nothing: the next `patchq watch` or `patchq run` removes it at its start, or "
                    "once it can see the work tree",
                )
            elif owner is None:
                yield Finding(
                    "repository.locks",
                    "todo" if age > _OLD_SECONDS else "weaker",
                    f"another program holds {lock} since {age} s; changes for it wait",
                    f"wait; if no git runs in this repository any more: rm '{lock}'",
                )


def _push_door(place: Place) -> Iterator[Finding]:
    """Yield a finding on pushes to refs/for/ if git's hooks are wired."""
    repo, wired = place.repo, set[str]()
    with suppress(Fault):  # where there is no git, `git.version` says so
        files = install.places(repo.workdir or repo.commondir)
        wired = {file.name for file in files if file.state == "installed"}
    if wired and (install.PUSH_DOOR - wired or install.to_set_up(repo.commondir)):
        yield Finding(
            "git.push",
            "weaker",
            "git's hooks are wired, and a push to refs/for/BRANCH is not handed in: "
            "`pre-receive`, `proc-receive` or their settings are not there",
            "patchq hooks install --git",
        )
    elif wired:
        yield Finding("git.push", "ok", "a push to refs/for/BRANCH is handed in")


def _remote_flaws(repo: Repository, config: Config) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the flaws of a remote's configuration, by the places of their keys."""
    remote = config.landing.remote
    if remote is None:
        return
    if not repo.setting(f"remote.{remote}.url"):
        yield ("landing", "remote"), f"expected a remote that `git remote` has, got `{remote}`"
    for number, hook in enumerate(config.hooks):
        own = os.environ.get("PATCHQ_REMOTE") if "PATCHQ_REMOTE" in hook.env else None
        if configured.name_in(hook.run) == configured.PUBLISH and (own or "origin") == remote:
            yield (
                ("hooks", number, "run"),
                f"expected no `{hook.run}` for `{remote}`: `landing.remote` keeps the proposals' "
                "branches there already",
            )


def _remote(place: Place) -> Iterator[Finding]:
    """Fetch from the remote, and push something that moves nothing."""
    remote = place.config.landing.remote
    wrong = [why for _, why in _remote_flaws(place.repo, place.config)]
    for why in wrong:
        yield Finding("landing.remote", "todo", why, "correct it in the configuration")
    if remote and not wrong:
        branches = branches_of(place.repo, place.queue, place.config, place.target)
        branches.refresh()
        branches.try_out(place.target)
        yield Finding("landing.remote", "ok", f"changes land on {remote}, which takes a push")


def flaws(repo: Repository, home: Path, rules: GateRules) -> list[str]:
    """Return the flaws, each with its place in the configuration or in git's."""
    config, commit = rules.config, rules.config.commit
    found = [
        *dry_start.flaws(config, home, home / config.queue.path),
        *_remote_flaws(repo, config),
    ]
    wrong = [f"{rules.place(*keys)}: {why}" for keys, why in found]
    try:
        Signer(repo, commit.sign).try_out(repo.identity() or Identity(*DEFAULT_IDENTITY))
    except CannotSign as fault:
        of_git = commit.sign == "auto"
        where = "git's configuration" if of_git else rules.place("commit", "sign")
        wrong.append(f"{where}: {fault.message}; {fault.hint}")
    return wrong


CHECKS = (
    Check("repository.format", lambda _: (), "the repository can be opened"),
    Check("repository.owner", _owner, "the repository belongs to who runs this"),
    Check("repository.target", _target, "the target has commits"),
    Check("git.signing", _signing, level="todo"),
    Check(
        "repository.links",
        lambda it: try_out("repository.links", it.repo.commondir, *[it.repo.commondir] * 2),
        "hard links and renames work in the git directory",
    ),
    Check("repository.locks", _locks, "no lock is left behind"),
    Check("git.push", _push_door),
    Check(
        "repository.worktrees",
        lambda it: () if it.config.landing.remote else work_trees(it.repo),
        "every work tree can be seen and written",
    ),
    Check("landing.remote", _remote, level="todo"),
)
