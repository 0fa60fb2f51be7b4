"""The queue: its file system, what that can do, its limits, and what is stuck in it."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from patchq.gate.config.schema import Config
from patchq.gate.errors import CRASHED, Fault, ObjectDamaged, UsageError
from patchq.gate.git.faults import FSCK
from patchq.gate.git.files import being_written, opened, rename_noreplace
from patchq.gate.land.worker import MOST_DEATHS, waits_for_mending
from patchq.gate.queue import layout, spool, store
from patchq.gate.queue.batches import Row
from patchq.gate.queue.layout import PUBLIC
from patchq.gate.queue.lock import lock_owner
from patchq.gate.queue.spool import claimed
from patchq.gate.queue.store import Store
from patchq.gate.report.schema import Report
from patchq.gate.service.doctor import Finding, Level, beside, writable

_FREE_BYTES = 64 << 20
_FREE_INODES = 1000
_STUCK_SECONDS = 3600
_OPEN = (
    "select number, token, state, deaths, name from responses"
    " where state in ('claimed', 'held', 'ending')"
)
_CURES = {ObjectDamaged.code: FSCK, CRASHED: "see the log and `dmesg`"}


def look(root: Path, gitdir: Path, home: Path, config: Config | None) -> Iterator[Finding]:
    """Everything about the queue at `root` of the repository at `gitdir`; the configuration's paths
    begin at `home`."""
    place = _place(root)
    yield place
    if place.level != "ok":
        return
    yield from _file_systems(root, gitdir, bool(config and config.queue.network_disk))
    yield from _abilities(root)
    yield from _space(root, gitdir)
    if config is None or config.queue.watch == "auto":
        yield from _inotify(root / "inbox")
    named = config.stats.prometheus if config else None
    if named and not os.access((home / named).parent, os.W_OK | os.X_OK):
        yield Finding(
            "stats.prometheus",
            "todo",
            f"the directory of {named} is not there, or cannot be written",
            "make it, for the user that runs patchq",
        )
    yield from _daemon(root)
    yield from beside.ended(root)
    yield from beside.noted(root, config)


def _place(root: Path) -> Finding:
    """Whether the queue's directories are there, and can be entered."""
    places = [p for p in (root, *(root / n for n in PUBLIC)) if os.path.lexists(p)]
    for place in places:
        if place.is_symlink() or not place.is_dir():
            return Finding(
                "queue.there",
                "fatal",
                f"{place} is no directory of the queue",
                f"mv '{place}' '{root.parent}/'; patchq fsck --repair",
            )
    for place in places:
        if not os.access(place, os.R_OK | os.X_OK):
            return Finding(
                "queue.there",
                "fatal",
                f"{place} cannot be entered by the user that runs this",
                f"chmod u+rwx '{place}'",
            )
    if missing := [name for name in PUBLIC if not (root / name).is_dir()]:
        return Finding(
            "queue.there",
            "todo",
            f"{root} is not a queue: {', '.join(missing)} missing",
            "make it: patchq init",
        )
    return Finding("queue.there", "ok", str(root))


def _file_systems(root: Path, gitdir: Path, network_disk: bool) -> Iterator[Finding]:
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
    else:
        yield Finding("queue.device", "ok", "queue and repository are on one file system")
    try:
        layout.refuse_network(root)
    except UsageError as fault:
        level: Level = "weaker" if network_disk else "fatal"
        yield Finding("queue.network", level, fault.message, fault.hint)


def _abilities(root: Path) -> Iterator[Finding]:
    """What the protocol asks of the file system, tried out."""
    name = f".patchq-{os.getpid()}"
    own, other = root / "inbox" / f"{name}.tmp", root / "active" / f"{name}.tmp"
    part = own.with_suffix(".part")
    try:
        own.write_bytes(b"x")
        with own.open("rb") as file:
            leases = being_written(file.fileno()) is not None
            os.fsync(file.fileno())
        with opened(root / "inbox", os.O_RDONLY | os.O_DIRECTORY) as folder:
            rename_noreplace(folder, own.name, part.name)
        os.rename(part, other)
        os.link(other, own)
    except OSError as error:
        yield Finding(
            "queue.works",
            "fatal",
            f"the queue cannot be worked with: {error.strerror}: {error.filename or root}",
            writable(
                error,
                root,
                "let the user that runs patchq write in all of its directories, on a file system "
                "with renames and hard links",
            ),
        )
        return
    finally:
        for path in (own, part, other):
            with suppress(OSError):
                path.unlink()
    yield Finding("queue.works", "ok", "renames, links and flushes work in the queue")
    if not leases and sys.platform == "linux":
        yield Finding(
            "queue.leases",
            "weaker",
            "this file system gives no leases: a file that is written in place counts as complete "
            "once it was quiet for `queue.settle_seconds`",
            "have agents rename complete files into the inbox",
        )


def _space(root: Path, gitdir: Path) -> Iterator[Finding]:
    for path in {place.stat().st_dev: place for place in (gitdir, root)}.values():
        free = os.statvfs(path)
        left = free.f_bavail * free.f_frsize
        few = free.f_files and free.f_favail < _FREE_INODES
        if left < _FREE_BYTES or few:
            what = f"{free.f_favail} inodes" if few else f"{left >> 20} MiB"
            yield Finding(
                "queue.space",
                "todo",
                f"only {what} are free at {path}: patchq stops, with every response kept, when a "
                "write fails",
                "make room; `queue.retention_days` removes finished batches sooner",
            )
        else:
            yield Finding("queue.space", "ok", f"{left >> 20} MiB are free at {path}")


def _inotify(inbox: Path) -> Iterator[Finding]:
    """Whether one more watch can be had now."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    failed = fd < 0 or libc.inotify_add_watch(fd, os.fsencode(inbox), 0x100) < 0
    error = os.strerror(ctypes.get_errno())
    if fd >= 0:
        os.close(fd)
    if not failed:
        yield Finding("queue.inotify", "ok", "the inbox can be watched")
        return
    key, least = ("max_user_watches", 524288) if fd >= 0 else ("max_user_instances", 1024)
    with suppress(OSError, ValueError):
        least = max(least, 2 * int(Path(f"/proc/sys/fs/inotify/{key}").read_text()))
    yield Finding(
        "queue.inotify",
        "weaker",
        f"the inbox cannot be watched ({error}): it is looked at every `queue.poll_seconds`",
        f"sysctl -w fs.inotify.{key}={least}",
    )


def _daemon(root: Path) -> Iterator[Finding]:
    """Whether one runs, and what is in its hands, or was in those of the one before."""
    try:
        owner = lock_owner(root)
    except Fault as fault:
        yield Finding("daemon", "fatal", fault.message, "patchq fsck --repair")
        return
    try:
        with store.look(root) as found:
            rows = found.all(_OPEN) if found else []
            reports = [report for row in rows if found and (report := _report(found, row))]
    except Fault as fault:
        yield Finding("queue.store", "fatal", fault.message, fault.hint or "")
        return
    tokens = [token for _, token, state, *_ in rows if state == "claimed"]
    held = len(rows) - len(tokens)
    old = [at for token in tokens if (at := claimed(token)) and time.time() - at > _STUCK_SECONDS]
    if owner is None:
        yield Finding("daemon", "ok", "no daemon runs; responses wait until one does")
    else:
        began = datetime.fromtimestamp(owner.since or time.time(), UTC).isoformat(
            timespec="seconds"
        )
        yield Finding("daemon", "ok", f"process {owner.pid} on {owner.host} since {began}")
    if owner is None and tokens:
        yield Finding(
            "queue.claims",
            "weaker",
            f"{len(tokens)} responses were being worked on when patchq last ended",
            "nothing: the next `patchq watch` or `patchq run` gives each its verdict",
        )
    elif old:
        yield Finding(
            "queue.claims",
            "todo",
            f"{len(old)} responses were claimed over an hour ago and have no verdict yet",
            "see the log for what the daemon is at; `patchq stop`, then `patchq watch` begins anew",
        )
    for _, _, state, deaths, name in rows:
        if state == "claimed" and deaths > 1:
            yield Finding(
                "queue.deadly",
                "todo",
                f"{deaths} processes ended while they decided on {os.fsdecode(name)}",
                "see the log, and `dmesg`, for what ended them; the next `patchq run`, or daemon, "
                f"tries it again, and holds it after {MOST_DEATHS} times",
            )
    mending = list(_to_mend(reports))
    yield from mending
    if held and not mending:
        yield Finding("queue.held", "ok", f"{held} batches are held; `patchq status` says why")


def _report(found: Store, row: Row) -> Report | None:
    paper = "select data from papers where number = :number and kind = 'report'"
    data = found.one(paper, number=row[0])
    return spool.report(data[0]) if data else None


def _to_mend(reports: Sequence[Report]) -> Iterator[Finding]:
    """Batches that are held since the repository cannot give what they need, since processes died
    with them in hand, or since nothing signs them."""
    for report in reports:
        if report.state == "held" and (code := waits_for_mending(report)):
            problem = report.problems[-1]
            cure = f"{_CURES.get(code) or problem.hint}; then `patchq retry {report.id}`"
            message = f"batch {report.id} is held: {problem.message}"
            yield Finding(code, "todo", message, cure)
