"""The machine: its system, its clock, git, and what hooks are kept in."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from patchq.config.schema import Config
from patchq.git import command
from patchq.git.repository import Repository
from patchq.hooks.flaws import cannot_start
from patchq.hooks.jail.process import NO_JAIL, can_jail
from patchq.model.errors import Fault
from patchq.service.doctor.finding import Finding

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


def look(repo: Repository | None, config: Config | None, queue: Path | None) -> Iterator[Finding]:
    """Everything about the machine; what is not known yet is None."""
    yield from _kind()
    yield from _clock(repo)
    yield from _git()
    if config is not None:
        yield from _commands(config)
    if queue is not None and queue.is_dir():
        yield from _jail(queue, bool(config and config.hooks))


def _kind() -> Iterator[Finding]:
    name = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield Finding("system.kind", "ok", name)
    if sys.platform != "linux":
        for what, message, cure in _ELSEWHERE:
            yield Finding(what, "weaker", message, cure)


def _clock(repo: Repository | None) -> Iterator[Finding]:
    now = time.time()
    if now < _EARLIEST:
        yield Finding(
            "system.clock",
            "todo",
            f"the clock says {time.strftime('%Y-%m-%d', time.gmtime(now))}: commits get that time, "
            "and `git gc` takes new objects for old ones",
            "set the clock: timedatectl set-ntp true",
        )
        return
    branch = repo.head_branch() if repo else None
    tip = repo.branch_tip(branch) if repo and branch else None
    if repo and tip and repo.time(tip) > now + _AHEAD_SECONDS:
        ahead = (repo.time(tip) - now) / 3600
        yield Finding(
            "system.clock",
            "todo",
            f"the newest commit of {branch} is {ahead:.1f} hours ahead of the clock, so the clock "
            "was set back, or that of another machine is wrong",
            "compare the clock: timedatectl",
        )
        return
    yield Finding("system.clock", "ok", "the clock is not behind the newest commit")


def _git() -> Iterator[Finding]:
    version = command.version()
    if not version:
        yield Finding(
            "git.version",
            "todo",
            "there is no git on the PATH: batches cannot land on a branch that is checked out, and "
            "no `pre-commit` hook gets its work tree",
            "install git 2.38 or later",
        )
        return
    if command.merges_trees(version):
        yield Finding("git.version", "ok", version)
        return
    yield Finding(
        "git.version",
        "weaker",
        f"{version} has no `merge-tree --write-tree`: edits of a moved base are checked by "
        "libgit2's merge, which knows fewer renames than git",
        "install git 2.38 or later",
    )


def _commands(config: Config) -> Iterator[Finding]:
    try:
        wrong = cannot_start(config)
    except Fault as fault:
        yield Finding("hooks.commands", "fatal", fault.message, fault.hint)
        return
    for number, why in wrong:
        yield Finding(
            "hooks.commands",
            "fatal",
            f"the hook {config.hooks[number].id} cannot start: {why}",
            "correct its `run`, or the PATH that patchq is started with",
        )
    if not wrong:
        yield Finding("hooks.commands", "ok", f"{len(config.hooks)} hooks can start")


def _jail(queue: Path, wanted: bool) -> Iterator[Finding]:
    try:
        jailed = can_jail(queue / "hooks")
    except (Fault, OSError):
        jailed = False
    if jailed:
        yield Finding("hooks.jail", "ok", "hooks run in namespaces of their own, without network")
        return
    why, cure = _no_jail()
    yield Finding(
        "hooks.jail",
        "weaker" if wanted else "ok",
        f"hooks run as plain processes, as {why}: what they leave is ended all the same, but they "
        "may write where patchq may, reach the network whatever `network` says, fill the disk",
        cure,
    )


def _no_jail() -> tuple[str, str]:
    """Why hooks cannot be jailed, and what to do."""
    if sys.platform != "linux":
        return f"{platform.system()} has no user namespaces", "run patchq on Linux for that"
    if os.environ.get(NO_JAIL):
        return f"{NO_JAIL} is set", f"unset {NO_JAIL}"
    for name, bad, setting in (
        ("user/max_user_namespaces", "0", "15000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ):
        if _sysctl(name) == bad:
            key = name.replace("/", ".")
            return f"the sysctl {key} is {bad}", f"sysctl -w {key}={setting}"
    kinds = _read("/proc/filesystems").split()
    if "overlay" not in kinds:
        return "the kernel has no overlay file system", "modprobe overlay"
    return (
        "this kernel or container does not let them have namespaces",
        "allow user namespaces and mounts in them: in a unit no RestrictNamespaces=, in a "
        "container a seccomp profile that has unshare and mount",
    )


def _sysctl(name: str) -> str:
    return _read(f"/proc/sys/{name}").strip()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
