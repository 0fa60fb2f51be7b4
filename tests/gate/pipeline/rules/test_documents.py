"""Files and talk (docs/formats.md, Whole files): what a fence under a path is."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

APP = "import os\n\n\ndef stop():\n    pass\n\n\nEND = 1\n"
NEW_APP = APP.replace("    pass\n", "    return 0\n")
BASE = {"src/app.py": APP, "src/util.js": "export const a = 1\n", "README.md": "# Tool\n"}
BLOCK = "<<<<<<< SEARCH\n    pass\n=======\n    return 0\n>>>>>>> REPLACE\n"
EDIT = f"src/app.py\n{BLOCK}"
DONE = {"src/app.py": NEW_APP}
PY = "def f():\n    return 1\n"
PAGE = f"# How to answer\n\nWrite it so:\n\n````\n{EDIT}````\n\nThat is all.\n"
SHORT = f"# How\n\nWrite:\n\n```\n{EDIT}```\n\nDone.\n"
UNREADABLE = ("response.unreadable_edit",)
OVER_NO_FILE = {
    "a heading": f"### src/new.py\n```python\n{PY}```\n",
    "a sentence": f"Create `src/new.py`:\n```python\n{PY}```\n",
    "a comment": f"So:\n```python\n# src/new.py\n{PY}```\n",
}


def row(name: str, text: str, *codes: str, **more: object) -> Row:
    return Row(name, BASE, text, codes=codes, **more)  # type: ignore[arg-type]


ROWS = [
    Row("a document that shows edits", BASE, f"`````markdown:docs/how.md\n{PAGE}`````\n",
        {"docs/how.md": PAGE}),
    row("a document beside edits", f"docs/how.md\n`````md\n{PAGE}`````\n\n{EDIT}", *UNREADABLE),
    row("in a short fence, colon", f"```md:docs/how.md\n{SHORT}```\n", *UNREADABLE),
    row("in a short fence, FILE", f"FILE: docs/how.md\n```md\n{SHORT}```\n", *UNREADABLE),
    Row("colon, replaced", BASE, f"```python:src/app.py\n{NEW_APP}```\n", DONE),
    Row("path line, replaced", BASE, f"src/app.py\n```python\n{NEW_APP}```\n", DONE),
    Row("whole_files", BASE, "---\nwhole_files: true\n---\nsrc/util.js\n```js\nlet b\n```\n",
        {"src/util.js": "let b\n"}),
    *(row(f"no form: {name}", text, "response.no_edits") for name, text in OVER_NO_FILE.items()),
    row("a new path beside edits", f"src/new.py\n```py\n{PY}```\n\n{EDIT}", *UNREADABLE,
        says=("may be the new file",)),
    Row("an old path beside edits", BASE, f"src/util.js\n```js\nlet b\n```\n\n{EDIT}", DONE,
        warnings=("response.beside",)),
    row("two paths", f"src/app.py\n```py:src/new.py\n{PY}```\n", *UNREADABLE),
    *(row(f"{path} stands for another", f"```py:{path}\nx = 1\n```\n", "path.invalid")
      for path in ("your/module.py", "path-to/app.py", "путь/к/app.py")),
    row("a placeholder over a fence", "path/to/file.py\n```python\nx = 1\n```\n", "path.invalid"),
    row("another case", "SRC/App.py\n```python\nprint('hello')\n```\n", "path.exists"),
    row("all elided", "src/new.py\n```python\n# ... existing code ...\n```\n", "edit.elided"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_files_and_what_only_shows_edits(bench: Bench, row: Row) -> None:
    check(bench, row)
