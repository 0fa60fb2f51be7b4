"""The crash sweep and the long run at a small size, and their judges, who are able to object."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from bench.crash import aftermath, strace
from tests.helpers.benches import bench

pytestmark = pytest.mark.slow


@pytest.fixture
def traced() -> None:
    try:
        strace.require()
    except strace.NoStrace as reason:
        pytest.skip(str(reason))


@pytest.mark.usefixtures("traced")
def test_g12_g14_g15_a_crash_leaves_nothing_to_object_to(tmp_path: Path) -> None:
    names = [
        "auto/kill/renameat:3,link:1",
        "checkout/error/syncfs:1/EIO",
        "accept/error/openat:40/EMFILE",
        "review/error/write:4/ENOSPC+",
        "accept/kill/rename:2",
    ]
    words = [word for name in names for word in ("--state", name)]
    done = bench("crash", *words, "--jobs", "1", "--work", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VIOLATED                                0" in done.stdout
    assert "points that were not met" not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_g14_a_small_disk_is_named_and_left_in_order(tmp_path: Path) -> None:
    """A hook's tree, a work tree that follows, or a pack does not fit; the sweep tries all."""
    words = ["--case", "checkout", "--case", "many", "--only", "pages"]
    words += ["--at", "20", "--at", "32", "--at", "40"]
    done = bench("crash.full", *words, cwd=tmp_path)
    if done.returncode == 3:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("{'3': 3}") == 2, "nothing was short"


@pytest.mark.usefixtures("traced")
def test_a_missing_safeguard_is_noticed(tmp_path: Path) -> None:
    words = ["--state", "review/kill/renameat:3", "--without", "dedupe", "--jobs", "1"]
    done = bench("crash", *words, "--work", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "--state review/kill/renameat:3" in done.stdout


def test_a_small_soak_leaves_nothing_to_object_to(tmp_path: Path) -> None:
    size = ["--responses", "40", "--kills", "4", "--pause", "0.3", "--upkeep", "1"]
    done = bench("crash.soak", *size, "--work", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 responses, 4 kills" in done.stdout


def test_a_verdict_too_few_and_one_too_many_are_noticed(tmp_path: Path) -> None:
    for name in ("inbox", "active", "done", "rejected"):
        (tmp_path / name).mkdir()
    for end, text in {".md": "1", ".report.md": "told", ".report.json": "{}"}.items():
        (tmp_path / "done" / f"one{end}").write_text(text)
    source = {"name": "one.md", "sha256": sha256(b"1").hexdigest()}
    one = {"id": "one", "state": "applied", "place": "done", "source": source}
    sent = {("one.md", sha256(b"1").hexdigest()): 1}
    assert [*aftermath.verdicts(tmp_path, sent, [one])] == []
    assert any("has 0 verdicts" in said for said in aftermath.verdicts(tmp_path, sent, []))
    assert any("has 2 verdicts" in said for said in aftermath.verdicts(tmp_path, sent, [one, one]))
    (tmp_path / "active" / "left").touch()
    assert [*aftermath.verdicts(tmp_path, sent, [one])] == ["active/ still holds ['left']"]
