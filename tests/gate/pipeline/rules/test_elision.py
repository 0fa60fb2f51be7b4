"""Lines that stand for others (docs/formats.md, Guards), in every form."""

from __future__ import annotations

import json

import pytest

from tests.helpers.deciding import Bench, Row, check

ELIDED = ("edit.elided",)
LINES = [f"step_{n} = {n}\n" for n in range(8)]
OLD = "".join(LINES)


def forms(path: str, old: str, new: str) -> dict[str, str]:
    """One replacement in two forms."""
    call = {"file_path": path, "old_string": old, "new_string": new}
    return {
        "block": f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n",
        "call": json.dumps([call]),
    }


def rows(
    name: str, path: str, new: str, codes: tuple[str, ...] = (), before: str = OLD, old: str = ""
) -> list[Row]:
    old = old or before
    after = {path: before.replace(old, new, 1)}
    return [
        Row(f"{name}, {form}", {path: before}, response, None if codes else after, codes)
        for form, response in forms(path, old, new).items()
    ]


HEAD = "".join(LINES[:2])
STANDS = [
    ("rest of the function", "a.py", "# rest of the function remains unchanged"),
    ("existing code", "a.js", "// existing code"),
    ("bare dots", "a.js", "..."),
]
REFUSED = [
    row
    for name, path, line in STANDS
    for new in (f"{HEAD}{line}\n",)
    for row in rows(name, path, new, ELIDED)
]
REFUSED += [
    Row("a whole file", {"a.py": OLD * 3}, f"```python:a.py\n{OLD * 2}# rest of file\n```\n", None,
        ELIDED),
    Row("a new file", {"o": ""}, "```python:b.py\n# existing code\n```\n", None, ELIDED),
]  # fmt: skip

PASSES = [
    *rows("other settings", "a.py", f"# Other settings\n{OLD}"),
    *rows("a comment that is added", "a.py", f"{OLD}# rest of the steps\n"),
    *rows("a body of dots", "a.py", "def f():\n    ...\n", before="def f():\n    a()\n    b()\n"),
    *rows("a heading of a document", "a.md", f"{HEAD}# Remaining work\n"),
    *rows("a line that the file has", "a.py", f"{HEAD}# existing code\n",
          before=f"{OLD}# existing code\n", old=OLD),
    *rows("in a string", "a.py", f"{HEAD}text = '# existing code'\n"),
]  # fmt: skip


@pytest.mark.parametrize("row", PASSES, ids=lambda row: row.name)
def test_what_stays(bench: Bench, row: Row) -> None:
    check(bench, row)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.name)
def test_what_stands_for_others_is_refused(bench: Bench, row: Row) -> None:
    check(bench, row)
