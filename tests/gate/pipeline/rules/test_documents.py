# ruff: noqa: E501
"""Files and talk (docs/formats.md, Whole files): what a fence under a path is."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

APP = """\
import os


def run(name):
    value = name.strip()
    return value


def stop():
    pass


END = 1
"""
NEW_APP = APP.replace("    pass\n", "    return 0\n")
README = "# Tool\n\nRun it:\n\n```sh\nmake\n```\n\nThat is all.\n"
BASE = {
    "src/app.py": APP,
    "src/util.js": "export const a = 1\n",
    "README.md": README,
    "docs/guide.md": "# Guide\n\nText.\n",
    "scripts/run.sh": "#!/bin/sh\nset -e\npython src/app.py\necho done\n",
    ".gitignore": "build/\n*.log\n",
}
BLOCK = "<<<<<<< SEARCH\n    pass\n=======\n    return 0\n>>>>>>> REPLACE\n"
EDIT = f"src/app.py\n{BLOCK}"
DONE = {"src/app.py": NEW_APP}
PY = "def f():\n    return 1\n"

# ---------------------------------------------------------------- answers without an edit

TALK = {
    "a placeholder": "path/to/file.py\n```python\nx = 1\n```\n",
    "a file in another case": "SRC/App.py\n```python\nprint('hello')\n```\n",
    "an elision under a new path": "src/new.py\n```python\n# ... existing code ...\n```\n",
}


@pytest.mark.parametrize("text", TALK.values(), ids=TALK)
def test_talk_changes_nothing(bench: Bench, text: str) -> None:
    verdict = bench.decide(Row("talk", BASE, text))
    assert verdict.files is None
    assert verdict.decision.state == "rejected"
    assert all("whole file, but" not in problem.message for problem in verdict.decision.problems)


# ---------------------------------------------------------------- files


def page(edits: str) -> str:
    return f"# How to answer\n\nWrite it so:\n\n````\n{edits}````\n\nThat is all.\n"


CALL = '{"path": "src/app.py", "old_str": "pass", "new_str": "return 0"}\n'
WHOLE = f"```python:src/app.py\n{NEW_APP}```\n"

HOWS = {
    "colon": "`````markdown:docs/how.md\n{}`````\n",
    "FILE": "FILE: docs/how.md\n`````md\n{}`````\n",
}
FORMS = {"block": EDIT, "call": CALL}
DOCUMENTS = [
    Row(f"{form}, {how}", BASE, text.format(page(edits)), {"docs/how.md": page(edits)})
    for form, edits in FORMS.items()
    for how, text in HOWS.items()
]


UNREADABLE = ("response.unreadable_edit",)
SHOWN = [
    Row("text before the block", BASE, f"src/app.py\n```\nFirst:\n{BLOCK}```\n", codes=UNREADABLE),
    Row("text behind it", BASE, f"src/app.py\n```\n{BLOCK}Done.\n```\n", codes=UNREADABLE),
    Row(
        "a document beside edits",
        BASE,
        f"docs/how.md\n`````md\n{page(EDIT)}`````\n\n{EDIT}",
        codes=UNREADABLE,
    ),
]


FILES = [
    Row("colon, new", BASE, f"```python:src/new.py\n{PY}```\n", {"src/new.py": PY}),
    Row("colon, replaced", BASE, WHOLE, DONE),
    Row("path line, replaced", BASE, f"src/app.py\n```python\n{NEW_APP}```\n", DONE),
    Row("whole_files", BASE, "---\nwhole_files: true\n---\nsrc/util.js\n```js\nlet b\n```\n", {"src/util.js": "let b\n"}),
    *(Row(f"no form: {name}", BASE, f"{above}\n```python{info}\n{PY}```\n", codes=("response.no_edits",)) for name, above, info in (
        ("a heading", "### src/new.py", ""), ("bold", "**src/new.py**", ""), ("a list", "1. src/new.py", ""),
        ("a sentence", "Create `src/new.py`:", ""), ("the info", "", " src/new.py"), ("a comment", "So:", "\n# src/new.py"),
    )),
    Row("a new path beside edits", BASE, f"src/new.py\n```py\n{PY}```\n\n{EDIT}", codes=UNREADABLE, says=("may be the new file",)),
    Row("an old path beside edits", BASE, f"src/util.js\n```js\nlet b\n```\n\n{EDIT}", DONE, warnings=("response.beside",)),
    Row("two paths", BASE, f"src/app.py\n```py:src/new.py\n{PY}```\n", codes=UNREADABLE),
]  # fmt: skip


TAUGHT = {
    "a block": EDIT,
    "a file": "FILE: src/new.py\nx = 1\nEND FILE\n",
}  # fmt: skip
CLOSED = [
    *(
        Row(f"{what} in a short fence, {how}", BASE, tie.format(f"# How\n\nWrite:\n\n```\n{edit}```\n\nDone.\n"), codes=UNREADABLE)
        for what, edit in TAUGHT.items()
        for how, tie in {"colon": "```md:docs/how.md\n{}```\n", "FILE": "FILE: docs/how.md\n```md\n{}```\n"}.items()
    ),
    *(
        Row(f"{path} stands for another", BASE, f"```py:{path}\nx = 1\n```\n", codes=("path.invalid",))
        for path in ("your/module.py", "path_to_your/app.py", "path-to/app.py", "pfad/zur/app.py", "путь/к/app.py")
    ),
]  # fmt: skip


ROWS = [*DOCUMENTS, *SHOWN, *FILES, *CLOSED]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_files_and_what_only_shows_edits(bench: Bench, row: Row) -> None:
    check(bench, row)
