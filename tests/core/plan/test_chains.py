"""Edits that build on each other, or meet at one point, delivered a second time."""

from __future__ import annotations

from random import Random
from string import ascii_lowercase

import pytest

from patchq.core.model.ops import Replace, ReplaceText
from tests.helpers.trees import PATH, edits, planned

STEPS = 5


def batch(dice: Random) -> tuple[str, list[tuple[str, str]]]:
    """A text of a few lines, and replacements, each of a line as those before it leave the text."""
    unused = iter(dice.sample(ascii_lowercase, 26))
    lines = [next(unused) for _ in range(dice.randint(2, 4))]
    before, pairs = lines[:], []
    for _ in range(dice.randint(2, STEPS)):
        first = dice.randrange(len(lines))
        old = lines[first : first + dice.choice((1, 1, 1, 2))]
        at = dice.randint(0, len(old))
        keeps = dice.random() < 0.7
        new = [*old[:at], next(unused), *old[at:]] if keeps else [next(unused), next(unused)]
        pairs.append((text(old), text(new)))
        lines[first : first + len(old)] = new
    return text(before), pairs


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("op", [Replace, ReplaceText])
def test_a_second_delivery_changes_nothing(op: type[Replace] | type[ReplaceText]) -> None:
    there = 0
    for seed in range(250):
        before, pairs = batch(Random(seed))
        sent = edits(*((PATH, op(old, new)) for old, new in pairs))
        first = planned(before, sent)
        if first.refused:
            continue
        again = planned(first.changes[0].after or b"", sent)
        assert again.changes == (), f"seed {seed}: {pairs} on {before!r}"
        there += not again.refused
    assert there, "some are recognised, not refused"
