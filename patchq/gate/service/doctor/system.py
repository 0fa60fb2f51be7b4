"""What patchq stands on: the machine with its clock, its git and what hooks are kept in; and the
repository, what it is made of, whose it is, and which locks stand in it."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from patchq.gate.config.schema import Config
from patchq.gate.errors import CannotSign, Fault, ObjectDamaged
from patchq.gate.git import command
from patchq.gate.git.linklock import owner_of
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from patchq.gate.git.signing import Signer
from patchq.gate.hooks import dry_start, install
from patchq.gate.hooks.sandbox import can_sandbox, no_sandbox
from patchq.gate.pipeline.session import NOBODY
from patchq.gate.service.doctor import Finding, Level, beside, writable

_EARLIEST = 1_700_000_000
_AHEAD_SECONDS = 3600
_ELSEWHERE = (
    (
        "system.leases",
        "there are no leases: a file that is written in place counts as complete once it was quiet "
        "for `queue.settle_seconds`, even if its writer only pauses",
        "have agents rename or link complete files into the inbox, as `patchq submit` does",
    ),
    (
        "system.flush",
        "there is no syncfs, and sync() leaves data in the drive's cache (F_FULLFSYNC would not): "
        "a power cut may take back the last verdicts and landings, though never half of one",
        "keep the machine on a battery, or fetch verdicts again after a power cut: `patchq fsck`",
    ),
    (
        "system.watching",
        "there is no inotify: the inbox is looked at every `queue.poll_seconds`",
        "set `queue.poll_seconds` as short as answers have to be",
    ),
)
"""What other systems lack, and which promise is weaker for it."""


def look_at_machine(
    repo: Repository | None, config: Config | None, queue: Path | None, target: str = ""
) -> Iterator[Finding]:
    """Everything about the machine; what is not known yet is None, or empty."""
    yield Finding(
        "system.kind",
        "ok",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
    )
    if sys.platform != "linux":
        for what, message, cure in _ELSEWHERE:
            yield Finding(what, "weaker", message, cure)
    yield from _clock(repo, target)
    version = command.version()
    if not version:
        yield Finding(
            "git.version",
            "todo",
            "there is no git on the PATH: batches cannot land on a branch that is checked out, and "
            "no `pre-commit` hook gets its work tree",
            "install git 2.38 or later",
        )
    elif command.merges_trees(version):
        yield Finding("git.version", "ok", version)
    else:
        yield Finding(
            "git.version",
            "weaker",
            f"{version} has no `merge-tree --write-tree`: edits of a moved base are checked by "
            "libgit2's merge, which knows fewer renames than git",
            "install git 2.38 or later",
        )
    if config is not None and repo is not None and queue is not None:
        yield from _commands(config, repo, queue)
    if queue is not None and queue.is_dir():
        yield from _sandbox(queue, bool(config and config.hooks))


def _clock(repo: Repository | None, branch: str) -> Iterator[Finding]:
    now, tip = time.time(), None
    with suppress(Fault):  # `_target` says so
        tip = repo.branch_tip(branch) if repo and branch else None
    if now < _EARLIEST:
        yield Finding(
            "system.clock",
            "todo",
            f"the clock says {time.strftime('%Y-%m-%d', time.gmtime(now))}: commits get that time, "
            "and `git gc` takes new objects for old ones",
            "set the clock: timedatectl set-ntp true",
        )
    elif repo and tip and repo.time(tip) > now + _AHEAD_SECONDS:
        ahead = (repo.time(tip) - now) / 3600
        yield Finding(
            "system.clock",
            "todo",
            f"the newest commit of {branch} is {ahead:.1f} hours ahead of the clock, so the clock "
            "was set back, or that of another machine is wrong",
            "compare the clock: timedatectl",
        )
    else:
        yield Finding("system.clock", "ok", "the clock is not behind the newest commit")


def _commands(config: Config, repo: Repository, queue: Path) -> Iterator[Finding]:
    try:
        wrong = dry_start.flaws(config, repo.commondir, repo.workdir or repo.commondir, queue)
    except Fault as fault:
        yield Finding("hooks.commands", "fatal", fault.message, fault.hint)
        return
    for (_, number, key), why in wrong:
        yield Finding(
            "hooks.commands",
            "fatal",
            f"the hook {config.hooks[int(number)].id} cannot start: {why}",
            f"correct its `{key}`, or the PATH that patchq is started with",
        )
    if not wrong:
        yield Finding("hooks.commands", "ok", f"{len(config.hooks)} hooks can start")


def _sandbox(queue: Path, wanted: bool) -> Iterator[Finding]:
    try:
        sandboxed = can_sandbox(queue / "hooks")
    except (Fault, OSError):
        sandboxed = False
    if sandboxed:
        yield Finding(
            "hooks.sandbox",
            "ok",
            "hooks run in namespaces of their own: no home, no other repository, no network",
        )
    else:
        why, cure = no_sandbox()
        yield Finding(
            "hooks.sandbox",
            "weaker" if wanted else "ok",
            f"hooks have no sandbox, as {why}: a `pre-commit` hook does not run unless its entry "
            "says `unconfined: true`; then it may read and write what patchq may, print what it "
            "reads, reach the network whatever `network` says, fill the disk",
            cure,
        )


_OLD_SECONDS = 3600
_EXTENSIONS = ("worktreeconfig", "relativeworktrees", "preciousobjects")


def look_at_repository(repo: Repository, config: Config | None, target: str) -> Iterator[Finding]:
    """Everything about a repository that can be opened."""
    yield Finding(
        "repository.format", "ok", f"{repo.commondir} can be opened: {', '.join(_features(repo))}"
    )
    owner = repo.commondir.stat().st_uid
    if owner == os.geteuid() or not os.geteuid():
        yield Finding("repository.owner", "ok", "the repository belongs to who runs this")
    else:
        yield Finding(
            "repository.owner",
            "todo",
            f"the repository belongs to user {owner}, and this is user {os.geteuid()}: git trusts "
            "it by `safe.directory` alone, and files that the daemon makes may be closed to their "
            "owner",
            "run patchq as the repository's owner, or set core.sharedRepository=group for both",
        )
    shared = bool(config and config.landing.remote)
    if target and not shared:  # `config` and `landing` say so otherwise
        yield from _target(repo, target)
    yield _signing(repo, config or Config())
    yield from _links(repo)
    yield from _packs(repo.commondir / "objects/pack")
    yield from _locks(repo.commondir)
    with suppress(Fault):  # where there is no git, `git.version` says so
        yield from _push_door(repo)
    unseen = [] if shared else list(beside.work_trees(repo))
    ok = Finding("repository.worktrees", "ok", "every work tree can be seen and written")
    yield from unseen or [ok]


def _push_door(repo: Repository) -> Iterator[Finding]:
    """Whether a push to refs/for/ is handed in, where git's hooks were wired for it."""
    places = list(install.places(repo.workdir or repo.commondir))
    wired = {place.name for place in places if place.state == "installed"}
    if not wired:
        return
    if shut := install.shut():
        yield Finding("git.push", "weaker", shut.why, shut.cure)
    elif install.PUSH_DOOR - wired or install.to_set_up(repo.commondir):
        yield Finding(
            "git.push",
            "weaker",
            "git's hooks are wired, and a push to refs/for/BRANCH is not handed in: "
            "`pre-receive`, `proc-receive` or their settings are not there",
            "patchq hooks install --git",
        )
    else:
        yield Finding("git.push", "ok", "a push to refs/for/BRANCH is handed in")


def _features(repo: Repository) -> list[str]:
    """Words for people; what patchq does not work with, `Repository.open` refuses."""
    there = repo.commondir
    found = ["SHA-1", "refs in files"]
    found += ["bare"] if repo.bare else []
    found += ["several work trees"] if (there / "worktrees").is_dir() else []
    found += ["shallow"] if (there / "shallow").exists() else []
    found += ["alternates"] if (there / "objects/info/alternates").exists() else []
    return found + [key for key in _EXTENSIONS if repo.setting(f"extensions.{key}") == "true"]


def _signing(repo: Repository, config: Config) -> Finding:
    """Whether commits get their signature, tried out."""
    try:
        how = Signer(repo, config.commit.sign).try_out(repo.identity() or Identity(*NOBODY))
    except CannotSign as fault:
        return Finding("git.signing", "todo", fault.message + "; batches are held", fault.hint)
    if how is None:
        why = "git's commit.gpgSign is off" if config.commit.sign else "`commit.sign` is false"
        return Finding("git.signing", "ok", f"commits are not signed: {why}")
    return Finding("git.signing", "ok", f"commits are signed: {how}")


def _target(repo: Repository, target: str) -> Iterator[Finding]:
    try:
        tip = repo.branch_tip(target)
    except Fault as fault:
        held = isinstance(fault, ObjectDamaged)  # and what is for other branches goes on
        level: Level = "todo" if held else "fatal"
        more = f"; batches for {target} are held" if held else ""
        yield Finding("repository.target", level, fault.message + more, fault.hint)
        return
    if tip:
        yield Finding("repository.target", "ok", f"batches are for {target}")
        yield from beside.passed_over(repo, target)
    elif repo.refs("refs/heads/"):
        why = f"there is no branch {target!r}, so there is no default target"
        yield Finding("repository.target", "fatal", why, "create it, or set another `target`")
    else:
        why = f"{target!r} has no commit yet, so nothing can land"
        yield Finding("repository.target", "fatal", why, "make a first commit")


def _packs(folder: Path) -> Iterator[Finding]:
    """Packs of which git sees nothing: half of each is gone."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    stems = {name.rpartition(".")[0] for name in names if name.endswith((".pack", ".idx"))}
    for stem in sorted(stems):
        pack, index = folder / f"{stem}.pack", folder / f"{stem}.idx"
        if index.name not in names:
            cure = f"git index-pack '{pack}'"
            yield Finding("repository.packs", "todo", f"{pack} has lost its index", cure)
        elif pack.name not in names:
            message = f"{index} has lost its pack, and git every object in it"
            cure = f"restore {pack.name} from another clone or a backup"
            yield Finding("repository.packs", "todo", message, cure)


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
        owner = owner_of(commondir, lock)
        if owner == "dead":
            yield Finding(
                "repository.locks",
                "weaker",
                f"{lock} was left by a patchq that died (it is a link to its own file)",
                "nothing: the next `patchq watch` or `patchq run` removes it at its start, or once "
                "it can see the work tree",
            )
        elif owner is None and age < _OLD_SECONDS:
            yield Finding(
                "repository.locks",
                "weaker",
                f"{lock} is held by another program since {age} s; batches for it wait",
                f"wait; if no git runs in this repository any more: rm '{lock}'",
            )
        elif owner is None:
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
