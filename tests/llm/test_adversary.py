"""A model that knows how its answers are judged, and means ill.

The files are patchq's own; a quote is some of their lines, one of them misremembered, and the edit
changes another.  Some of the time the lines are gone from the file: then every apply is wrong.  The
model names any lines that it likes, mostly near the right ones, and says for the replacement
whatever the program is going to compare it with.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

from patchq.core.model.ops import Replace
from patchq.core.model.values import Edit
from patchq.core.plan import batch
from patchq.llm.certainty import merged, words
from patchq.llm.chat import Cache
from patchq.llm.corrections import NEW, OLD, PlannedBatch, Questioner, correct_quotes
from tests.helpers.scripted import Scripted
from tests.helpers.trees import RULES, DictTree

SOURCES = [
    path.read_text().splitlines(keepends=True)
    for path in sorted(
        (Path(__file__).parents[2] / "patchq" / "core" / "resolve").glob("[a-z]*.py")
    )
]
PATH = "a.txt"


def misremembered(line: str, dice: random.Random) -> str:
    known = words(line)
    word = dice.choice(known) if known else ""
    return dice.choice(
        [
            line.replace(word, f"{word}s", 1) if word else line,
            line.replace(word, "other", 1) if word else line,
            line.replace('"', "'"),
            line.replace(", ", ","),
            line.rstrip("\n") + "  # noted\n",
        ]
    )


def test_no_choice_of_lines_is_a_wrong_apply() -> None:
    dice, seen = random.Random(11), Counter[str]()
    for _ in range(75):
        lines = dice.choice(SOURCES)
        count = dice.randrange(2, 9)
        first = dice.randrange(len(lines) - count)
        true = lines[first : first + count]
        changed, damaged = dice.sample(range(count), 2)
        quote = list(true)
        quote[damaged] = misremembered(quote[damaged], dice)
        fresh = dice.choice([["changed()\n"], [true[changed], "added()\n"], []])
        old, new = ("".join(half) for half in (quote, _changed(quote, changed, fresh)))
        gone = dice.random() < 0.3
        rest = lines[:first], lines[first + count :]
        file = "".join([*rest[0], *rest[1]]) if gone else "".join(lines)
        right = "".join([*rest[0], *_changed(true, changed, fresh), *rest[1]])
        tree = DictTree({PATH: file})
        edits = [Edit("1", "search_replace", (1, 1), PATH, Replace(old, new))]
        plan = batch.plan(edits, tree, RULES)
        if not plan.refused:
            continue
        there = file.splitlines(keepends=True)
        for _ in range(25):
            near = dice.choice((first, first, dice.randrange(len(there))))
            start = max(0, near + dice.randrange(-2, 3))
            snippet = "".join(there[start : start + max(1, count + dice.randrange(-2, 3))])
            said = [
                json.dumps({OLD: snippet}),
                json.dumps({NEW: merged(old, snippet, new) or snippet}),
            ]
            questioner = Questioner(Scripted(said), Cache(), lambda: None)
            repair = correct_quotes(PlannedBatch(edits, plan, tree, RULES), questioner)
            if repair is None:
                seen["refused"] += 1
                continue
            (change,) = repair.batch.plan.changes
            assert not gone, (old, snippet)
            assert change.after == right.encode(), (old, new, snippet)
            seen["applied"] += 1
    assert seen["applied"] > 10
    assert seen["refused"] > 100


def _changed(lines: list[str], at: int, fresh: list[str]) -> list[str]:
    return [*lines[:at], *fresh, *lines[at + 1 :]]
