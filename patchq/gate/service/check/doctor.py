"""All checks of the place that patchq works in: repository, queue, cluster and machine."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.config.schema import Config
from patchq.gate.errors import CRASHED, CannotSign, Fault, ObjectDamaged, UsageError
from patchq.gate.git import command
from patchq.gate.git.command import FSCK
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from patchq.gate.git.signing import Signer
from patchq.gate.hooks import dry_start
from patchq.gate.hooks.sandbox import can_sandbox, no_sandbox
from patchq.gate.land.worker import waits_for_mending
from patchq.gate.pipeline.context import GateRules, branches_of
from patchq.gate.pipeline.session import DEFAULT_IDENTITY
from patchq.gate.queue import spool, store
from patchq.gate.queue.spool import PUBLIC
from patchq.gate.review.pull_requests import last_round
from patchq.gate.service import cluster
from patchq.gate.service.check import (
    Finding,
    Level,
    moment,
    noted,
    space,
    work_trees,
)

_HELD = (
    "select data from responses join papers on papers.number = responses.number"
    " where state = 'held' and kind = 'report'"
)
_CURES = {ObjectDamaged.code: FSCK, CRASHED: "see the log and `dmesg`"}
_TOKEN_DAYS = 5
# What other systems lack, and the promise that is weaker for it.
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
        "there is no inotify: the inbox is read every `queue.poll_seconds`",
        "set `queue.poll_seconds` as short as answers have to be",
    ),
)


class Place(Struct, frozen=True):
    """The repository and queue that are checked; paths in the configuration begin at `home`."""

    repo: Repository
    home: Path
    queue: Path
    config: Config
    target: str


class Check(Struct, frozen=True):
    """One row of a table of checks.

    `ok` is the message where `look` finds nothing; `level` is that of a fault that keeps it from
    looking.
    """

    what: str
    look: Callable[[Place], Iterable[Finding]]
    ok: str = ""
    level: Level = "fatal"

    def findings(self, place: Place) -> list[Finding]:
        """Return what the check finds; a fault is a finding, too."""
        try:
            found = list(self.look(place))
        except ObjectDamaged as fault:
            message = f"{fault.message}; changes that need it are held"
            return [Finding(self.what, "todo", message, fault.hint)]
        except Fault as fault:
            return [Finding(self.what, self.level, fault.message, fault.hint)]
        return found or ([Finding(self.what, "ok", self.ok)] if self.ok else [])


def _try_out(what: str, first: Path, second: Path) -> Iterator[Finding]:
    """Write, link and rename a file in two directories; yield a failure."""
    own, linked = (first / f".patchq-{os.getpid()}.{end}" for end in ("tmp", "part"))
    moved = second / own.name
    try:
        own.write_bytes(b"x")
        os.link(own, linked)
        os.rename(linked, moved)
    except OSError as error:
        yield Finding(
            what,
            "fatal",
            f"{first} takes no files, hard links or renames: {error.strerror}",
            "let the user that runs patchq write there, on a file system with hard links that is "
            "mounted to be written",
        )
    finally:
        for path in (own, linked, moved):
            with suppress(OSError):
                path.unlink()


# ---------------------------------------------------------------- the repository


def _target(place: Place) -> Iterator[Finding]:
    target = place.target
    # `config` and `landing.remote` tell of any other.
    if target and not place.config.landing.remote and place.repo.branch_tip(target) is None:
        yield Finding(
            "repository.target",
            "fatal",
            f"{target!r} has no commit, so nothing can land",
            "make a first commit, or set another `target`",
        )


def _signs(repo: Repository, config: Config) -> bool:
    """Sign a commit that is thrown away; return False if commits are not signed."""
    signer = Signer(repo, config.commit.sign)
    return signer.try_out(repo.identity() or Identity(*DEFAULT_IDENTITY))


def _signing(place: Place) -> Iterator[Finding]:
    signs = _signs(place.repo, place.config)
    yield Finding("git.signing", "ok", f"commits are {'' if signs else 'not '}signed")


def _remote_flaws(repo: Repository, config: Config) -> Iterator[tuple[tuple[str, ...], str]]:
    remote = config.landing.remote
    if remote and not repo.setting(f"remote.{remote}.url"):
        yield ("landing", "remote"), f"expected a remote that `git remote` has, got `{remote}`"


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


def _hooks(place: Place) -> Iterator[Finding]:
    repo, config = place.repo, place.config
    home = repo.workdir or repo.commondir
    for (_, number, key), why in dry_start.flaws(config, home, place.queue):
        yield Finding(
            "hooks.commands",
            "fatal",
            f"the hook {config.hooks[int(number)].id} cannot start: {why}",
            f"correct its `{key}`, or the PATH that patchq is started with",
        )


def flaws(repo: Repository, home: Path, rules: GateRules) -> list[str]:
    """Return the flaws, each with its place in the configuration or in git's."""
    config = rules.config
    found = [
        *dry_start.flaws(config, home, home / config.queue.path),
        *_remote_flaws(repo, config),
    ]
    wrong = [f"{rules.place(*keys)}: {why}" for keys, why in found]
    here = config.target and not config.landing.remote and repo.refs("refs/heads/")
    if here and repo.branch_tip(config.target or "") is None:
        named = f"expected a branch with a commit, got `{config.target}`"
        wrong.append(f"{rules.place('target')}: {named}")
    try:
        _signs(repo, config)
    except CannotSign as fault:
        of_git = config.commit.sign == "auto"
        where = "git's configuration" if of_git else rules.place("commit", "sign")
        wrong.append(f"{where}: {fault.message}; {fault.hint}")
    return wrong


# ---------------------------------------------------------------- the queue


def _missing(place: Place) -> Iterator[Finding]:
    """Yield what keeps everybody from the queue's directories."""
    root = place.queue
    there = [path for path in (root, *(root / name for name in PUBLIC)) if os.path.lexists(path)]
    for path in there:
        if path.is_symlink() or not path.is_dir():
            yield Finding(
                "queue.there",
                "fatal",
                f"{path} is no directory of the queue",
                f"mv '{path}' '{root.parent}/'; patchq init",
            )
    if names := [name for name in PUBLIC if root / name not in there]:
        yield Finding(
            "queue.there",
            "todo",
            f"{root} is not a queue: {', '.join(names)} missing",
            "make it: patchq init",
        )


def _network(place: Place) -> Iterator[Finding]:
    try:
        spool.refuse_network(place.queue)
    except UsageError as fault:
        level: Level = "weaker" if place.config.queue.network_disk else "fatal"
        yield Finding("queue.network", level, fault.message, fault.hint)


def _held(place: Place) -> Iterator[Finding]:
    for report in (spool.report(data) for (data,) in store.ask(place.queue, _HELD)):
        if report and (code := waits_for_mending(report)):
            problem = report.problems[-1]
            yield Finding(
                code,
                "todo",
                f"change {report.id} is held: {problem.message}",
                f"{_CURES.get(code) or problem.hint}; then `patchq retry {report.id}`",
            )


# ---------------------------------------------------------------- machine, cluster and forge


def of_any_machine() -> Iterator[Finding]:
    """Yield what can be checked without a repository."""
    kind = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield Finding("system.kind", "ok", kind)
    if sys.platform != "linux":
        for what, message, cure in _ELSEWHERE:
            yield Finding(what, "weaker", message, cure)
    version = command.version()
    if command.is_recent(version):
        yield Finding("git.version", "ok", version)
    else:
        yield Finding(
            "git.version",
            "todo",
            f"{version or 'there is no git on the PATH, which'} cannot merge trees: edits of a "
            "moved base are not decided",
            "install git 2.38 or later",
        )


def without_sandbox(queue: Path) -> Finding | None:
    """Return the finding that hooks have no sandbox; None without a queue."""
    try:
        if not queue.is_dir() or can_sandbox(queue / "hooks"):
            return None
    except (Fault, OSError):
        pass
    why, cure = no_sandbox()
    return Finding(
        "hooks.sandbox",
        "weaker",
        f"hooks have no sandbox, as {why}: a `pre-commit` hook does not run unless its entry "
        "says `unconfined: true`; then it may read and write what patchq may, print what it "
        "reads, reach the network whatever `network` says, fill the disk",
        cure,
    )


def _sandbox(place: Place) -> Iterator[Finding]:
    if found := without_sandbox(place.queue):
        yield found if place.config.hooks else replace(found, level="ok")


def _cluster(place: Place) -> Iterator[Finding]:
    if not place.config.has_cluster:
        return
    state, repo = cluster.look(place.config), place.repo
    from patchq.gate.queue.postgres.database import foreign

    yield Finding("cluster.database", "ok", f"{state['database']}, version {state['version']}")
    root = state["repository"]
    if root and not repo.shallow and not repo.exists(root):
        yield Finding("cluster.repository", "fatal", *foreign(root))
    unserved = ", ".join(state["unserved"])
    if unserved or not state["workers"]:
        yield Finding(
            "cluster.lanes",
            "todo",
            f"no worker serves {unserved or 'the cluster'}, so responses wait",
            "start `patchq worker` where `cluster.lanes` lets it serve them",
        )


def _forge(place: Place) -> Iterator[Finding]:
    section = place.config.forge
    if not place.config.has_forge:
        return
    if not section.token_command and not os.environ.get(section.token_env):
        cure = "set it, or `forge.token_command`"
        yield Finding("forge.token", "todo", f"{section.token_env} is not set", cure)
    made = last_round(place.queue)
    days = (made.expires - time.time()) / 86400
    if made.expires and days < _TOKEN_DAYS:
        words = f"ends in {days:.0f} days" if days > 0 else "has ended"
        yield Finding("forge.expiry", "todo", f"the token {words}", "make another one")
    if made.at:
        left = f"; the forge takes {made.left} more requests" if made.left else ""
        yield Finding("forge.round", "ok", f"the last round was {moment(made.at)}{left}")


# ---------------------------------------------------------------- the tables


_CHECKS = (
    Check("repository.format", lambda _: (), "the repository can be opened"),
    Check("repository.target", _target, "the target has commits"),
    Check("git.signing", _signing, level="todo"),
    Check(
        "repository.links",
        lambda it: _try_out("repository.links", it.repo.commondir, it.repo.commondir),
        "hard links and renames work in the git directory",
    ),
    Check(
        "repository.worktrees",
        lambda it: () if it.config.landing.remote else work_trees(it.repo),
        "every work tree can be seen and written",
    ),
    Check("landing.remote", _remote, level="todo"),
    Check("cluster.database", _cluster),
    Check("system.kind", lambda _: of_any_machine()),
    Check("forge.token", _forge, level="todo"),
    Check("hooks.commands", _hooks, "every hook can start"),
    Check("hooks.sandbox", _sandbox, "hooks run without home, other repositories and network"),
)
QUEUE_CHECKS = (
    Check("queue.there", lambda _: (), "the queue is there"),
    Check("queue.network", _network),
    Check(
        "queue.works",
        lambda it: _try_out("queue.works", it.queue / "inbox", it.queue / "active"),
        "files can be written, linked and renamed in the queue",
    ),
    Check(
        "queue.space",
        lambda it: space(it.repo.commondir, it.queue),
        "there is room on the disk",
    ),
    Check("queue.store", _held),
    Check("troubles", lambda it: noted(it.queue, it.config)),
)


def findings(place: Place) -> Iterator[Finding]:
    """Yield what is found; a queue that is not there is not looked into."""
    absent = list(_missing(place))
    for check in (*_CHECKS, *(() if absent else QUEUE_CHECKS)):
        yield from check.findings(place)
    yield from absent
