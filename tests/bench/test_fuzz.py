"""The fuzz command: it runs, repeats itself by its seed, and notices a broken promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[2] / "bench" / "fuzz.py"
BREAK = """
import runpy, sys
from patchq.plan import batch as apply
from patchq.model.values import Plan
sys.argv = sys.argv[1:]
apply.plan = lambda edits, *rest: Plan()
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("x = 1\n")
    done = run(str(FUZZ), "--seconds", "1", "--seed", "7", "--checkout", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    seed, counts = done.stdout.splitlines()
    assert seed == "seed 7"
    assert "applied" in counts
    assert "refused" in counts


def test_a_finding_is_saved_with_its_files(tmp_path: Path) -> None:
    done = run("-c", BREAK, str(FUZZ), "--seconds", "20", "--seed", "7", "--save", str(tmp_path))
    assert done.returncode == 1
    (saved,) = tmp_path.glob("finding-*.json")
    found = json.loads(saved.read_text())
    assert "not every edit has one outcome" in found["told"]
    assert found["response"]
    assert str(saved) in done.stdout
