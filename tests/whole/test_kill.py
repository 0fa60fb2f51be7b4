"""The daemon is killed at random moments: a small share of `python -m bench.crash.kills`."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from bench.crash import kills
from bench.crash.aftermath import reports

KILLS = int(os.environ.get("KILLS", "6"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))


@pytest.mark.parametrize("mode", kills.MODES)
def test_g12_every_response_has_one_verdict_however_often_the_daemon_is_killed(
    tmp_path: Path, mode: str
) -> None:
    """`KILLS` and `SEED` in the environment ask for more kills, and for the same moments again."""
    life, found = kills.live(tmp_path / "life", mode, SEED, -(-KILLS // len(kills.MODES)))
    print(f"SEED={SEED} KILLS={KILLS}")
    print(f"{len(life.dropped)} responses: {Counter(r['state'] for r in reports(life.queue))}")
    assert found == []
