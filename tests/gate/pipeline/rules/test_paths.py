"""How a response may spell a path, in every form that carries one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from bench.corpus.rewrites.forms import FORMS, Form, PathStyle
from bench.corpus.rewrites.tasks import Change, applied
from tests.helpers.deciding import ROOT, Bench, Row, check

FILES = {
    "src/pages/a.ts": "one\ntwo\nthree\n",
    "src/pages/b.ts": "four\n",
    "lib/b/c.py": "x = 1\n",
    "Makefile": "all:\n",
    "w/x.txt": "w\n",
}
EDIT = Change("src/pages/a.ts", "two\n", "2\n", 1)
NEW = Change("src/pages/n.ts", None, "new\n")


def _change(form: Form, change: Change) -> Change:
    if form.family != "files" or change.old is None:
        return change
    return Change(change.path, FILES[change.path], applied(FILES, [change])[change.path])


# ---------------------------------------------------------------- a diff's prefix

SRC = {"src/x.py": "one\n", "x.py": "root\n"}
PLAIN = [form for form in FORMS if form.name not in ("unified_diff", "diff_fence", "mail")]
EDITED, ADDED = Change("src/x.py", "one\n", "two\n"), Change("src/new.py", None, "new\n")


def _prefixed(prefix: str) -> PathStyle:
    return PathStyle(spell=lambda p: f"{prefix}{p}")


def _alike(form: Form, change: Change, files: Mapping[str, str]) -> Change:
    if form.family != "files" or change.old is None:
        return change
    return Change(change.path, files[change.path], applied(files, [change])[change.path])


CREATING = [form for form in PLAIN if form.creates]


@pytest.mark.parametrize("prefix", ["a/", "b/"])
@pytest.mark.parametrize("form", CREATING, ids=lambda form: form.name)
def test_a_prefix_before_a_new_file(bench: Bench, form: Form, prefix: str) -> None:
    alone = form.write([ADDED], _prefixed(prefix))
    says = ("'src/new.py' behind a diff's prefix", f"a directory {prefix[0]!r}")
    check(bench, Row("alone", SRC, alone, None, ("path.invalid",), says=says))
    edited = _alike(form, EDITED, SRC)
    for changes in ([edited, ADDED], [ADDED, edited]):
        text = form.write(changes, _prefixed(prefix))
        check(bench, Row("both", SRC, text, {"src/x.py": "two\n", "src/new.py": "new\n"}))
    has = SRC | {f"{prefix}y.py": "y\n"}
    check(bench, Row("both, a directory", has, text, None, ("path.invalid",), says=says))
    check(bench, Row("a directory", has, alone, {f"{prefix}src/new.py": "new\n"}))
    for path in ("new.py", "lib/new.py"):
        text = form.write([Change(path, None, "new\n")], _prefixed(prefix))
        check(bench, Row("no such directory", SRC, text, {f"{prefix}{path}": "new\n"}))


DONE, MADE = {"src/x.py": "two\n"}, {"src/new.py": "new\n"}
HUNK, NEW_HUNK = "@@ -1 +1 @@\n-one\n+two\n", "@@ -0,0 +1 @@\n+new\n"
DIFFS = [
    Row("new", SRC, f"--- /dev/null\n+++ b/src/new.py\n{NEW_HUNK}", MADE),
    Row("absolute", SRC, f"--- {ROOT}/src/x.py\n+++ {ROOT}/src/x.py\n{HUNK}", DONE),
]


# ---------------------------------------------------------------- what stands above a block

AB = {"src/a.py": "one\ntwo\n", "src/b.py": "three\n", "src/c.py": "one\ntwo\n", "CHANGES": "one\n"}
BLOCK = "<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n"
CREATION = "<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n"
FIND = "FIND:\n```\none\n```\n\nREPLACE WITH:\n```\n1\n```\n"
A = {"src/a.py": "1\ntwo\n"}
UNREADABLE = ("response.unreadable_edit",)

ABOVE = [
    Row("both hold it", AB, f"### src/c.py\n\nIn `src/a.py`:\n\n{BLOCK}", None, UNREADABLE),
]


# ---------------------------------------------------------------- one file, several spellings


def _block(path: str, old: str = "one\n", new: str = "1\n") -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


BOTH = {"src/a.py": "1\n2\n"}
SEVERAL = [
    Row("two", AB, _block("./src/a.py") + _block("src\\a.py", "two\n", "2\n"), BOTH),
]


# ---------------------------------------------------------------- new files like others

MADE_A = {"a.py": "new\n"}
TWINS = [
    Row("root", AB, f"a.py\n{CREATION}", None, ("path.not_found",), says=("src/a.py",)),
    Row(
        "the other goes",
        AB,
        f"src/a.py\n<<<<<<< DELETE\n>>>>>>> DELETE\n\na.py\n{CREATION}",
        MADE_A | {"src/a.py": None},
    ),
]


# ---------------------------------------------------------------- what is elsewhere

ELSEWHERE: Mapping[str, Callable[[str], str]] = {
    "absolute elsewhere": lambda p: f"/home/ada/shop/{p}",
    "up": lambda p: f"../{p}",
}


@pytest.mark.parametrize("spelling", ELSEWHERE)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_what_is_elsewhere(bench: Bench, form: Form, spelling: str) -> None:
    style = PathStyle(spell=ELSEWHERE[spelling])
    verdict = bench.decide(Row(spelling, FILES, form.write([_change(form, EDIT)], style)))
    assert verdict.files is None
    if form.creates:
        verdict = bench.decide(Row(spelling, FILES, form.write([NEW], style)))
        assert verdict.files is None


ROWS = [*DIFFS, *ABOVE, *SEVERAL, *TWINS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_which_file_is_meant(bench: Bench, row: Row) -> None:
    check(bench, row)
