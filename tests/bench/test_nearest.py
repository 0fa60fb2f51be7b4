"""The bench of suggested places tells a good way from one that is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.corpus import nearest

FILE = "".join(f"def step_{k}(value):\n    return value + {k}00\n\n\n" for k in range(1, 9))
BLOCK = "a.py\n<<<<<<< SEARCH\n{}=======\nnew\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("start", "code"), [(None, 0), (28, 1)], ids=["patchq's way", "always the same line"]
)
def test_a_share_below_the_least_fails(
    start: int | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted = FILE[: FILE.index("def step_5")]
    case = {"id": "1", "source": "s", "format": "f", "expect": "exact", "before": {"a.py": "b"},
            "after": {"a.py": "b"}, "response": BLOCK.format(quoted)}  # fmt: skip
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in ({"blob": "b", "text": FILE}, case)))
    if start is not None:
        monkeypatch.setitem(nearest.WAYS, "patchq", lambda text, quote: [start])
    monkeypatch.setattr("sys.argv", ["nearest", str(path)])
    assert nearest.main() == code
