"""Faults in between: the forge, the way to it, and this process end at any time."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.forge import story
from tests.forge.conftest import Scene
from tests.forge.fake import TOKEN

_SEEDS = 6
"""Of the two hundred that `python -m bench.forge` tries."""


@cache
def _wanted(place: Path) -> dict[str, Any]:
    scene = Scene(place, story.CONFIG)
    story.tell(scene, lambda: story.quiet(scene))
    return story.end(scene)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [*(("github", seed) for seed in range(_SEEDS)), *(("gitlab", seed) for seed in range(2))],
)
def test_the_end_is_the_same_with_faults(kind: str, seed: int, tmp_path_factory: Any) -> None:
    """One request for each proposal, each comment once, one reply, and the same end everywhere."""
    place = tmp_path_factory.getbasetemp() / "without"
    scene = Scene(tmp_path_factory.mktemp("with"), story.CONFIG, judged=False, kind=kind)
    assert story.with_faults(scene, seed) > 0
    assert story.end(scene) == _wanted(place)
    assert TOKEN not in "".join(scene.said)
