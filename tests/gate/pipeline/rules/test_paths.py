"""How a response may spell a path, in every form that carries one."""

from __future__ import annotations

import pytest

from bench.corpus.rewrites.forms import FORMS, Form, PathStyle
from bench.corpus.rewrites.tasks import Change
from tests.helpers.command import block
from tests.helpers.deciding import ROOT, Bench, Row, check

SRC = {"src/x.py": "one\n", "x.py": "root\n"}
CREATING = [
    form
    for form in FORMS
    if form.creates and form.name not in ("unified_diff", "diff_fence", "mail")
]


@pytest.mark.parametrize("prefix", ["a/", "b/"])
@pytest.mark.parametrize("form", CREATING, ids=lambda form: form.name)
def test_a_prefix_before_a_new_file(bench: Bench, form: Form, prefix: str) -> None:
    style = PathStyle(spell=lambda path: f"{prefix}{path}")
    edited, added = Change("src/x.py", "one\n", "two\n"), Change("src/new.py", None, "new\n")
    alone = form.write([added], style)
    says = ("'src/new.py' behind a diff's prefix", f"a directory {prefix[0]!r}")
    check(bench, Row("alone", SRC, alone, None, ("path.invalid",), says=says))
    for changes in ([edited, added], [added, edited]):
        text = form.write(changes, style)
        check(bench, Row("both", SRC, text, {"src/x.py": "two\n", "src/new.py": "new\n"}))
    has = SRC | {f"{prefix}y.py": "y\n"}
    check(bench, Row("both, a directory", has, text, None, ("path.invalid",), says=says))
    check(bench, Row("a directory", has, alone, {f"{prefix}src/new.py": "new\n"}))
    for path in ("new.py", "lib/new.py"):
        text = form.write([Change(path, None, "new\n")], style)
        check(bench, Row("no such directory", SRC, text, {f"{prefix}{path}": "new\n"}))


AB = {"src/a.py": "one\ntwo\n", "src/c.py": "one\ntwo\n"}
ONE = ("one\n", "1\n")
CREATION = block("a.py", "", "new\n")
GONE = "src/a.py\n<<<<<<< DELETE\n>>>>>>> DELETE\n\n"


ROWS = [
    Row("a diff of a new file", SRC, "--- /dev/null\n+++ b/src/new.py\n@@ -0,0 +1 @@\n+new\n",
        {"src/new.py": "new\n"}),
    Row("an absolute path", SRC,
        f"--- {ROOT}/src/x.py\n+++ {ROOT}/src/x.py\n@@ -1 +1 @@\n-one\n+two\n",
        {"src/x.py": "two\n"}),
    Row("two paths above a block", AB, f"### src/c.py\n\nIn `src/a.py`:\n\n{block('', *ONE)}",
        codes=("response.unreadable_edit",)),
    Row("one file, two spellings", AB,
        block("./src/a.py", *ONE) + block("src\\a.py", "two\n", "2\n"), {"src/a.py": "1\n2\n"}),
    Row("a new file like another", AB, CREATION, codes=("path.not_found",), says=("src/a.py",)),
    Row("the other goes", AB, GONE + CREATION, {"a.py": "new\n", "src/a.py": None}),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_which_file_is_meant(bench: Bench, row: Row) -> None:
    check(bench, row)
