"""A person's commits beside landings at a small size, with the real daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.benches import bench

pytestmark = pytest.mark.slow


def test_nothing_is_lost_beside_a_person(tmp_path: Path) -> None:
    size = ["--commits", "5", "--json", "out.json", "--work", str(tmp_path)]
    done = bench("storm.beside", *size, cwd=tmp_path)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # few tries may fail by chance
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["lost"] == []
    assert told["beside"]["tries"] == 5
    assert told["beside"]["responses"] > 5
