"""Whoever waits hears of what happens, by the kernel or by looking."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from patchq.gate.queue import events, store
from patchq.gate.queue.spool import create
from patchq.gate.service.watcher import Watcher


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create(tmp_path)
    return tmp_path


def note(root: Path, *ids: str) -> None:
    database = store.opened(root)
    for id in ids:
        events.add(database, id, "claimed")
    store.ring(root)


@pytest.mark.parametrize("long", [False, True], ids=["looking", "told by the kernel"])
def test_a_wait_ends_with_the_next_event(root: Path, long: bool) -> None:
    note(root, "before")
    watcher = Watcher(root)
    assert watcher.read() == []
    if long:
        watcher.fileno()
    assert not watcher.wait(0.01)
    other = threading.Timer(0.05, note, (root, "a", "b"))
    other.start()
    assert watcher.wait(30)
    other.join(60)
    assert [one["batch"] for one in watcher.read()] == ["a", "b"]
    assert not watcher.wait(0)
    watcher.close()


def test_a_wait_can_be_ended(root: Path) -> None:
    watcher = Watcher(root)
    watcher.read()
    watcher.fileno()
    threading.Timer(0.05, watcher.ring).start()
    assert watcher.wait(30)
    assert watcher.read() == []
    watcher.close()
