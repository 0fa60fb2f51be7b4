"""Checks of the queue: its directories, what their file system can do, and what is stuck."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from tempfile import TemporaryFile

from patchq.gate.errors import CRASHED, ObjectDamaged, UsageError
from patchq.gate.git.faults import FSCK
from patchq.gate.git.files import being_written
from patchq.gate.land.worker import MOST_DEATHS, waits_for_mending
from patchq.gate.queue import layout, spool, store
from patchq.gate.queue.layout import PUBLIC
from patchq.gate.queue.lock import lock_owner
from patchq.gate.service.check import (
    Check,
    Finding,
    Level,
    Place,
    cure_of_writing,
    moment,
    troubles,
    try_out,
)

_STUCK_SECONDS = 3600
_OPEN = (
    "select token, state, deaths, name, data from responses"
    " left join papers on papers.number = responses.number and kind = 'report'"
    " where state in ('claimed', 'held', 'ending')"
)
_CURES = {ObjectDamaged.code: FSCK, CRASHED: "see the log and `dmesg`"}


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
        layout.refuse_network(place.queue)
    except UsageError as fault:
        level: Level = "weaker" if place.config.queue.network_disk else "fatal"
        yield Finding("queue.network", level, fault.message, fault.hint)


def _works(place: Place) -> Iterator[Finding]:
    root = place.queue
    if error := try_out(root / "inbox", root / "active"):
        yield Finding(
            "queue.works",
            "fatal",
            f"the queue cannot be worked with: {error.strerror}: {error.filename or root}",
            cure_of_writing(
                error,
                root,
                "let the user that runs patchq write in all of its directories, on a file system "
                "with renames and hard links",
            ),
        )


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
    from patchq.gate.service.doorbell import Doorbell  # it needs watchdog

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
            "nothing: the next `patchq watch` or `patchq run` gives each its verdict",
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


CHECKS = (
    Check("queue.there", lambda _: (), "the queue is there"),
    Check("queue.device", _device, "queue and repository are on one file system"),
    Check("queue.network", _network),
    Check("queue.works", _works, "files can be written, linked and renamed in the queue"),
    Check("queue.leases", _leases),
    Check(
        "queue.space",
        lambda place: troubles.space(place.repo.commondir, place.queue),
        "there is room on the disk",
    ),
    Check("queue.inotify", _watch, "the inbox can be watched"),
    Check("daemon", _daemon, "no daemon runs; responses wait until one does",
          cure="patchq fsck --repair"),
    Check("queue.store", _claims),
    Check("daemon.ended", lambda place: troubles.ended(place.queue)),
    Check("troubles", lambda place: troubles.noted(place.queue, place.config)),
)  # fmt: skip
