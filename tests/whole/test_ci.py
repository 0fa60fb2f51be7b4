"""What the README tells people to run is what the gate of this project runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_gate_runs_the_readme_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r'^readonly README_TEST="(.*)"$', script, re.MULTILINE)
    assert found is not None
    assert found[1] in (ROOT / "README.md").read_text(encoding="utf-8")
    assert 'bash -c "$README_TEST"' in script
