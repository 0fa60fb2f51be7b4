"""The kinds; importing this registers them all."""

from __future__ import annotations

from bench.corpus.rewrites.kinds import (
    agents,
    blocks,
    damage,
    documents,
    files,
    front_matter,
    neighbours,
    patches,
    paths,
    plain,
    readings,
    results,
    scripts,
    sequence,
    stated,
    talk,
    tools,
    wrappers,
)
from bench.corpus.rewrites.registry import KINDS

__all__ = [
    "KINDS",
    "agents",
    "blocks",
    "damage",
    "documents",
    "files",
    "front_matter",
    "neighbours",
    "patches",
    "paths",
    "plain",
    "readings",
    "results",
    "scripts",
    "sequence",
    "stated",
    "talk",
    "tools",
    "wrappers",
]
