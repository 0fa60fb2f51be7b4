"""The bench of rewrites: it has something of every slip, and notices what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bench.corpus.cases import read_cases
from bench.corpus.rewrites.__main__ import judge
from bench.corpus.rewrites.slips import SLIPS
from bench.corpus.rewrites.tasks import Task, tasks_of

TOTAL = "".join(f"total_{name} = 'the {name} of it'\n" for name in ("one", "two", "three", "four"))
SHARES = "".join(
    f"\ndef share_{n}(value, whole):\n    name = 'share {n}'\n    limit = {n}\n"
    f"    part = value * {n}\n    print(name, part)\n    return part / whole\n\n"
    for n in range(9)
)
BEFORE = {
    "pkg/total.py": TOTAL + SHARES,
    "pkg/names.toml": "".join(f"[section_{n}]\nname = 'n{n}'\nsize = {n}\n" for n in range(12)),
    "docs/notes.txt": "".join(f"Note {n}: nothing.\n" for n in range(9)),
    "docs/guide.txt": "".join(f"Line {n} of the guide says {n * n}.\n" for n in range(40)),
}
AFTER = {
    "pkg/total.py": BEFORE["pkg/total.py"]
    .replace("value * 2", "value * 22")
    .replace("value * 6\n    print(name, part)", "value + 6\n    print(name, part, limit)"),
    "pkg/names.toml": BEFORE["pkg/names.toml"].replace("size = 7\n", "size = 77\nage = 'a & b'\n"),
    "docs/guide.txt": BEFORE["docs/guide.txt"]
    .replace("Line 11 ", "Line eleven ")
    .replace("Line 30 of the guide says 900.\n", ""),
    "pkg/extra.py": "extra = 1\n",
}
CHANGES = 6
"""Of one case; its sub-tasks are one, two and three neighbours of them."""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = sorted({TOTAL, *BEFORE.values(), *AFTER.values()})
    lines: list[dict[str, object]] = [{"blob": text, "text": text} for text in texts]
    case = {
        "id": "one",
        "source": "here",
        "format": "any",
        "response": "",
        "before": BEFORE,
        "after": AFTER,
    }
    lines.append({**case, "expect": "exact"})
    lines.append({**case, "id": "the same", "expect": "exact"})
    lines.append({**case, "id": "another", "after": {"pkg/extra.py": TOTAL}, "expect": "refuse"})
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def tasks(corpus: Path) -> list[Task]:
    return tasks_of(read_cases(corpus))


def test_tasks_are_the_case_and_its_parts_and_none_is_there_twice(corpus: Path) -> None:
    found = tasks(corpus)
    assert Counter(len(task.changes) for task in found) == {
        CHANGES: 1,
        1: CHANGES,
        2: CHANGES - 1,
        3: CHANGES - 2,
    }
    assert len({task.changes for task in found}) == len(found)
    assert found[0].result() == {**BEFORE, **AFTER}


def test_there_is_something_of_every_slip(corpus: Path) -> None:
    for name, counts in judge(tasks(corpus), 1):
        assert counts["exact" if SLIPS[name].certain else "refused"], name
