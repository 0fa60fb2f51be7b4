"""The fuzz command: it runs, repeats itself by its seed, and notices a broken promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.benches import bench

pytestmark = pytest.mark.slow


def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("x = 1\n")
    words = ["--texts", "60", "--seed", "7", "--checkout", str(tmp_path)]
    done = bench("crash.fuzz", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    seed, counts = done.stdout.splitlines()
    assert seed == "seed 7"
    assert "applied" in counts
    assert "refused" in counts
