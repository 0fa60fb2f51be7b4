"""The fuzz command: it runs, repeats itself by its seed, and notices a broken promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.benches import bench, python

pytestmark = pytest.mark.slow

BREAK = """
import runpy
from patchq.core.plan import batch as apply
from patchq.core.model.values import Plan
apply.plan = lambda edits, *rest: Plan()
runpy.run_module("bench.crash.fuzz", run_name="__main__", alter_sys=True)
"""


def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("x = 1\n")
    words = ["--texts", "60", "--seed", "7", "--checkout", str(tmp_path)]
    done = bench("crash.fuzz", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    seed, counts = done.stdout.splitlines()
    assert seed == "seed 7"
    assert "applied" in counts
    assert "refused" in counts


def test_a_finding_is_saved_with_its_files(tmp_path: Path) -> None:
    words = ["--seconds", "20", "--seed", "7", "--save", str(tmp_path)]
    done = python("-c", BREAK, *words, cwd=tmp_path)
    assert done.returncode == 1
    (saved,) = tmp_path.glob("finding-*.json")
    found = json.loads(saved.read_text())
    assert "not every edit has one outcome" in found["told"]
    assert found["response"]
    assert str(saved) in done.stdout
