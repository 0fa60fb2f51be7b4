"""The bench of rewrites: it has something of every slip, and notices what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

from bench.corpus.cases import read_cases
from bench.corpus.rewrites.__main__ import judge
from bench.corpus.rewrites.slips import SLIPS
from bench.corpus.rewrites.tasks import tasks_of

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


def test_there_is_something_of_every_slip(tmp_path: Path) -> None:
    texts = sorted({*BEFORE.values(), *AFTER.values()})
    blobs: list[dict[str, object]] = [{"blob": text, "text": text} for text in texts]
    case = {"id": "one", "source": "here", "format": "any", "response": "", "expect": "exact"}
    path = tmp_path / "cases.jsonl"
    lines = [*blobs, {**case, "before": BEFORE, "after": AFTER}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, counts in judge(tasks_of(read_cases(path)), 1):
        assert counts["exact" if SLIPS[name].certain else "refused"], name
