"""All checks of the place that patchq works in: repository, queue, cluster and machine."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from msgspec.structs import replace

from patchq.gate.errors import CRASHED, Fault, ObjectDamaged, UsageError
from patchq.gate.git import command
from patchq.gate.git.command import FSCK
from patchq.gate.git.files import being_written
from patchq.gate.hooks import dry_start
from patchq.gate.hooks.sandbox import can_sandbox, no_sandbox
from patchq.gate.land.worker import MOST_DEATHS, waits_for_mending
from patchq.gate.queue import spool, store
from patchq.gate.queue.lock import lock_owner
from patchq.gate.queue.spool import PUBLIC
from patchq.gate.review.pull_requests import last_round
from patchq.gate.service.check import (
    Check,
    Finding,
    Level,
    Place,
    ended,
    moment,
    noted,
    repository,
    space,
    try_out,
)
from patchq.gate.service.wake import Doorbell

_STUCK_SECONDS = 3600
_OPEN = (
    "select token, state, deaths, name, data from responses"
    " left join papers on papers.number = responses.number and kind = 'report'"
    " where state in ('claimed', 'held', 'ending')"
)
_CURES = {ObjectDamaged.code: FSCK, CRASHED: "see the log and `dmesg`"}
_EARLIEST = 1_700_000_000
_AHEAD_SECONDS = 3600
_WAITS_SECONDS = 10.0
_APART_SECONDS = 30.0
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


def _clock(place: Place) -> Iterator[Finding]:
    now = time.time()
    tip = place.repo.branch_tip(place.target) if place.target else None
    ahead = place.repo.time(tip) - now if tip else 0.0
    if now < _EARLIEST:
        yield Finding(
            "system.clock",
            "todo",
            f"the clock says {time.strftime('%Y-%m-%d', time.gmtime(now))}: commits get that time, "
            "and `git gc` takes new objects for old ones",
            "set the clock: timedatectl set-ntp true",
        )
    elif ahead > _AHEAD_SECONDS:
        yield Finding(
            "system.clock",
            "todo",
            f"the newest commit of {place.target} is {ahead / 3600:.1f} hours ahead of the clock, "
            "so the clock was set back, or that of another machine is wrong",
            "compare the clock: timedatectl",
        )


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
    if not place.database:
        yield Finding(
            "cluster.database",
            "fatal",
            "the configuration has a cluster, and no database is named",
            "set PATCHQ_DATABASE, or `cluster.database` in the file (without a password)",
        )
        return
    try:
        from patchq.gate.queue.postgres.database import foreign
        from patchq.gate.queue.postgres.status import look
    except ImportError as error:
        yield Finding(
            "cluster.database",
            "fatal",
            f"the package {error.name!r} is not installed",
            "pip install 'patchq[cluster]'",
        )
        return
    state, repo = look(place.database, writes=True), place.repo
    yield Finding("cluster.database", "ok", f"{state.database}, version {state.version}")
    if state.repository and not repo.shallow and not repo.exists(state.repository):
        yield Finding("cluster.repository", "fatal", *foreign(state.repository))
    if abs(state.ahead) > _APART_SECONDS:
        way = "ahead of" if state.ahead > 0 else "behind"
        yield Finding(
            "cluster.clock",
            "weaker",
            f"this machine's clock is {abs(state.ahead):.0f} s {way} the database's",
            "set it by NTP: a report has the time of the machine that decided",
        )
    unserved = ", ".join(lane.lane for lane in state.unserved(_WAITS_SECONDS))
    workers = ", ".join(f"{one.name} on {one.host}" for one in state.workers)
    if unserved or not workers:
        yield Finding(
            "cluster.lanes",
            "todo",
            f"responses wait for {unserved}, and no worker serves that"
            if unserved
            else "no worker runs",
            "start `patchq worker` where `cluster.lanes` lets it serve them",
        )
    else:
        yield Finding("cluster.lanes", "ok", f"workers: {workers}")


def _forge(place: Place) -> Iterator[Finding]:
    section = place.config.forge
    if not place.config.has_forge:
        return
    if find_spec("httpx2") is None:
        cure = "pip install 'patchq[forge]'"
        yield Finding("forge.client", "todo", "the package 'httpx2' is not installed", cure)
    if section.token_command or os.environ.get(section.token_env):
        yield Finding("forge.token", "ok", "a token is named; `patchq forge check` tries it")
    else:
        cure = "set it, or `forge.token_command`"
        yield Finding("forge.token", "todo", f"{section.token_env} is not set", cure)
    made = last_round(place.queue)
    days = (made.expires - time.time()) / 86400
    if made.expires and days < _TOKEN_DAYS:
        words = f"ends in {days:.0f} days" if days > 0 else "has ended"
        yield Finding("forge.expiry", "todo", f"the token {words}", "make another one")
    if made.at:
        left = f"; the forge takes {made.left} more requests" if made.left else ""
        message = f"the last round was {moment(made.at)}{left}"
        yield Finding("forge.round", "ok", message)


def missing(place: Place) -> Iterator[Finding]:
    """Yield what keeps everybody from the queue's directories."""
    root = place.queue
    there = [path for path in (root, *(root / name for name in PUBLIC)) if os.path.lexists(path)]
    for path in there:
        if path.is_symlink() or not path.is_dir():
            yield Finding(
                "queue.there",
                "fatal",
                f"{path} is no directory of the queue",
                f"mv '{path}' '{root.parent}/'; patchq fsck --repair",
            )
        elif not os.access(path, os.R_OK | os.X_OK):
            yield Finding(
                "queue.there",
                "fatal",
                f"{path} cannot be entered by the user that runs this",
                f"chmod u+rwx '{path}'",
            )
    if names := [name for name in PUBLIC if root / name not in there]:
        yield Finding(
            "queue.there",
            "todo",
            f"{root} is not a queue: {', '.join(names)} missing",
            "make it: patchq init",
        )


def _device(place: Place) -> Iterator[Finding]:
    root, gitdir = place.queue, place.repo.commondir
    if len({os.lstat(root / name).st_dev for name in PUBLIC}) > 1:
        yield Finding(
            "queue.device",
            "fatal",
            "the queue's directories are on different file systems, so nothing can be renamed from "
            "one to the other",
            "put inbox/, active/, done/ and rejected/ on one file system",
        )
    elif root.stat().st_dev != gitdir.stat().st_dev:
        yield Finding(
            "queue.device",
            "weaker",
            "queue and repository are on different file systems: each landing waits for two "
            "flushes in place of one",
            "set `queue.path` to a place on the repository's file system",
        )


def _network(place: Place) -> Iterator[Finding]:
    try:
        spool.refuse_network(place.queue)
    except UsageError as fault:
        level: Level = "weaker" if place.config.queue.network_disk else "fatal"
        yield Finding("queue.network", level, fault.message, fault.hint)


def _leases(place: Place) -> Iterator[Finding]:
    if sys.platform != "linux":
        return
    with suppress(OSError), TemporaryFile(dir=place.queue / "inbox", suffix=".tmp") as file:
        if being_written(file.fileno()) is None:
            yield Finding(
                "queue.leases",
                "weaker",
                "this file system gives no leases: a file that is written in place counts as "
                "complete once it was quiet for `queue.settle_seconds`",
                "have agents rename complete files into the inbox",
            )


def _watch(place: Place) -> Iterator[Finding]:
    bell = Doorbell(place.queue / "inbox", place.config.queue.watch, 1.0)
    bell.close()
    if bell.warning:
        yield Finding(
            "queue.inotify",
            "weaker",
            bell.warning,
            "sysctl -w fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288",
        )


def _daemon(place: Place) -> Iterator[Finding]:
    if owner := lock_owner(place.queue):
        yield Finding(
            "daemon", "ok", f"process {owner.pid} on {owner.host} since {moment(owner.since)}"
        )


def _claims(place: Place) -> Iterator[Finding]:
    rows = store.ask(place.queue, _OPEN)
    claims = [row for row in rows if row[1] == "claimed"]
    before = time.time() - _STUCK_SECONDS
    old = [row for row in claims if (spool.claimed(row[0]) or before) < before]
    if claims and lock_owner(place.queue) is None:
        yield Finding(
            "queue.claims",
            "weaker",
            f"{len(claims)} responses were being worked on when patchq last ended",
            "start `patchq watch` or `patchq run`, which gives each its verdict",
        )
    elif old:
        yield Finding(
            "queue.claims",
            "todo",
            f"{len(old)} responses were claimed over an hour ago and have no verdict yet",
            "see the log; `patchq stop`, then `patchq watch` begins anew",
        )
    for _, _, deaths, name, _ in claims:
        if deaths > 1:
            yield Finding(
                "queue.deadly",
                "todo",
                f"{deaths} processes ended while they decided on {os.fsdecode(name)}",
                "see the log, and `dmesg`, for what ended them; the next `patchq run`, or daemon, "
                f"tries it again, and holds it after {MOST_DEATHS} times",
            )
    for report in (spool.report(data) for *_, data in rows if data):
        if report and report.state == "held" and (code := waits_for_mending(report)):
            problem = report.problems[-1]
            yield Finding(
                code,
                "todo",
                f"change {report.id} is held: {problem.message}",
                f"{_CURES.get(code) or problem.hint}; then `patchq retry {report.id}`",
            )


QUEUE_CHECKS = (
    Check("queue.there", lambda _: (), "the queue is there"),
    Check("queue.device", _device, "queue and repository are on one file system"),
    Check("queue.network", _network),
    Check(
        "queue.works",
        lambda it: try_out("queue.works", it.queue, it.queue / "inbox", it.queue / "active"),
        "files can be written, linked and renamed in the queue",
    ),
    Check("queue.leases", _leases),
    Check(
        "queue.space",
        lambda place: space(place.repo.commondir, place.queue),
        "there is room on the disk",
    ),
    Check("queue.inotify", _watch, "the inbox can be watched"),
    Check("daemon", _daemon, "no daemon runs; responses wait until one does",
          cure="patchq fsck --repair"),
    Check("queue.store", _claims),
    Check("daemon.ended", lambda place: ended(place.queue)),
    Check("troubles", lambda place: noted(place.queue, place.config)),
)  # fmt: skip
_CHECKS = (
    Check("cluster.database", _cluster),
    Check("system.kind", lambda _: of_any_machine()),
    Check("system.clock", _clock, "the clock is not behind the newest commit", level="ok"),
    Check("forge.token", _forge, level="todo"),
    Check("hooks.commands", _hooks, "every hook can start"),
    Check("hooks.sandbox", _sandbox, "hooks run without home, other repositories and network"),
)


def findings(place: Place) -> Iterator[Finding]:
    """Yield what is found; a queue that is not there is not looked into."""
    absent = list(missing(place))
    for check in (*repository.CHECKS, *(() if absent else QUEUE_CHECKS), *_CHECKS):
        yield from check.findings(place)
    yield from absent
