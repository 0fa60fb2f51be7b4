"""The cluster's bench at its smallest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cluster import server
from bench.cluster.ground import ClusterGround
from bench.cluster.points import points
from bench.cluster.server import ServerOnce

PATCHQ = [sys.executable, "-m", "patchq"]


@pytest.fixture(scope="module")
def own() -> Iterator[ServerOnce]:
    with server.running() as own:
        yield own


@pytest.mark.parametrize(
    "rows",
    [
        "^after push, unheard, kill -9$",
        pytest.param("^(before|after) intend, kill -9$", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_lost_at_a_point(tmp_path: Path, own: ServerOnce, rows: str) -> None:
    ground = ClusterGround(tmp_path, PATCHQ, own.conninfo, own, 1, quick=True)
    found = points(ground, 1, 0, rows, away=2.0)
    assert found
    assert [(row.times, row.wrong) for row in found] == [(1, [])] * len(found)
