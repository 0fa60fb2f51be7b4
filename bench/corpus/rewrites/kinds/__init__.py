"""The kinds; importing this registers them all."""

from __future__ import annotations

from bench.corpus.rewrites.kinds import (
    agents,
    damage,
    documents,
    front_matter,
    neighbours,
    paths,
    plain,
    results,
    sequence,
    talk,
    wrappers,
)
from bench.corpus.rewrites.registry import KINDS

__all__ = [
    "KINDS",
    "agents",
    "damage",
    "documents",
    "front_matter",
    "neighbours",
    "paths",
    "plain",
    "results",
    "sequence",
    "talk",
    "wrappers",
]
