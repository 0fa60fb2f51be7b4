"""Waits, with real directories, real signals and the kernel's own events."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from patchq.gate.queue import events, store
from patchq.gate.queue.bell import Bell
from patchq.gate.queue.spool import create
from patchq.gate.service.wake import Doorbell, Watcher
from tests.helpers.ending import until


def _write(inbox: Path) -> None:
    (inbox / "x.md").write_bytes(b"text")


def _rename_in(inbox: Path) -> None:
    outside = inbox.parent / "outside.md"
    outside.write_bytes(b"text")
    outside.rename(inbox / "x.md")


@pytest.mark.parametrize("arrive", [_write, _rename_in])
def test_a_new_file_rings(tmp_path: Path, arrive: Callable[[Path], None]) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    doorbell = Doorbell(inbox, "auto", 600.0)
    assert (doorbell.warning, doorbell.polling) == (None, False)
    arrive(inbox)
    until(lambda: doorbell.wait(1))
    doorbell.close()


def test_f16_without_inotify_it_polls_and_says_so_once(tmp_path: Path) -> None:
    starved = (
        "import os, resource, sys, watchdog.observers.inotify; from pathlib import Path\n"
        "from patchq.gate.service.wake import Doorbell\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "fds = []\n"
        "try:\n"
        "    while True: fds.append(os.open('/dev/null', os.O_RDONLY))\n"
        "except OSError: os.close(fds.pop()), os.close(fds.pop())\n"
        "doorbell = Doorbell(Path(sys.argv[1]), 'auto', 0.05)\n"
        "os.close(fds.pop())\n"
        "print(doorbell.polling, doorbell.warning)\n"
        "print(doorbell.wait(60))\n"
        "doorbell.close()\n"
    )
    words = [sys.executable, "-c", starved, str(tmp_path)]
    told = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    first, second = told.stdout.splitlines()
    assert first.startswith("True the inbox cannot be watched")
    assert "every 0.05 s" in first
    assert second == "set()"
    assert told.stderr == ""


def test_a_ring_behind_a_look_at_others_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = os.pipe()
    bell, read = Bell(), os.read

    def rings_first(fd: int, size: int) -> bytes:
        bell.ring()
        return read(fd, size)

    try:
        os.write(other, b"x")
        monkeypatch.setattr(os, "read", rings_first)
        assert len(bell.wait(60, one)) == 2
    finally:
        bell.close()
        os.close(one)
        os.close(other)


def test_a_bell_waits_for_any_number_of_a_descriptor() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(2048, limits[0]), limits[1]))
    one, other = os.pipe()
    high = fcntl.fcntl(one, fcntl.F_DUPFD, 1500)
    bell = Bell()
    try:
        os.write(other, b"x")
        assert bell.wait(60, high) == {high}
        os.read(high, 1)
        assert bell.wait(0, high) == set()
        bell.ring()
        assert bell.wait(60, high)
        assert bell.wait(0) == set()
    finally:
        bell.close()
        for fd in (one, other, high):
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_wait_ends_with_the_next_event(tmp_path: Path) -> None:
    create(tmp_path)
    events.add_event(store.opened(tmp_path), "before", "claimed")
    stopped: list[bool] = []
    watcher = Watcher(tmp_path, stopped=lambda: bool(stopped))
    assert watcher.read() == []
    assert not watcher.wait(0.01)
    events.add_event(store.opened(tmp_path), "a", "claimed")
    other = threading.Timer(0.05, store.ring, (tmp_path,))
    other.start()
    assert watcher.wait(30)
    other.join(60)
    assert [one["batch"] for one in watcher.read()] == ["a"]
    assert not watcher.wait(0)
    stopped.append(True)
    assert watcher.wait(30)
