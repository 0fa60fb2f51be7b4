"""The storm and the replay at a small size, with the real daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.benches import bench
from tests.helpers.gitrepo import commit_files, make_repo

pytestmark = pytest.mark.slow


def test_a_small_storm_leaves_nothing_to_object_to(tmp_path: Path) -> None:
    size = ["--agents", "4", "--responses", "4", "--files", "60", "--pause", "0.2"]
    done = bench(
        "storm", *size, "--picks", "2", "--json", "out.json", "--work", str(tmp_path), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["responses"] == 16
    assert told["violations"] == []
    assert told["landed"] >= 6
    assert told["picked"] is not None


def history(root: Path) -> Path:
    """A clone with twelve commits, in two files of code, that can be picked apart."""
    lines = [f"x{number} = {number}\n" for number in range(120)]
    repo = make_repo(root / "clone", {"a.py": "".join(lines), "b.py": "".join(lines)})
    for number in range(12):
        at = number * 37 % 110
        lines[at] = f"x{at} = {at} + {number}\n"
        new = {"a.py": "".join(lines)} if number % 3 else {f"n{number}.py": "".join(lines[:3])}
        commit_files(repo, new)
    return repo


def test_replay_runs_the_command(tmp_path: Path) -> None:
    done = bench(
        "storm.replay",
        "--clone",
        str(history(tmp_path)),
        "--pairs",
        "9",
        "--work",
        str(tmp_path),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert int(counts["exact"]) >= 4
    assert int(counts["conflict"]) >= 1
    assert int(counts["exact"]) + int(counts["conflict"]) == 9
