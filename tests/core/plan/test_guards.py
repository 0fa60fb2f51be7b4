"""Lines that stand for others, files of escapes, and mixed encodings."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import Create, Replace, Write
from patchq.core.model.values import Plan
from patchq.core.plan.targets import PlanRules
from tests.helpers.trees import RULES, edits, planned, told


def code(before: str, old: str, new: str, rules: PlanRules = RULES) -> Plan:
    """The plan of one replacement in a file that is no document."""
    return planned({"f.c": before}, edits(("f.c", Replace(old, new))), rules)


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...", "    # ... rest of the function",
        "// … remaining cases unchanged", "/* ... other rules ... */", " * ... same as before",
        "<!-- ... rest of the page -->", "{/* ... existing markup */}", "-- ... omitted",
        "; ... the rest", "... rest of the file ...",
        "…existing imports…".replace("…existing", "… existing"), "x = [  # ... existing entries",
        "return a;  // ... Other cases", '" ... existing settings',
    ],
)  # fmt: skip
def test_a_line_that_stands_for_others_is_refused(line: str) -> None:
    plan = code("a\nb\n", "a\n", f"a\n{line}\n")
    assert told(plan) == ["edit.elided"]
    assert line.strip() in plan.problems[0].message
    assert told(planned({}, edits(("n.c", Create(f"a\n{line}\n"))))) == ["edit.elided"]


@pytest.mark.parametrize(
    "line",
    [
        "Callable[..., T]", "def f(*args: ..., rest: int) -> None:", "{...x}", "...rest,", "...",
        "# ...", "# the rest", "print('... and the rest')", "'... and the rest',",
        '"... and the rest",', 'f(a, b, "... other")', "wait... for the rest", "// ...others",
    ],
)  # fmt: skip
def test_other_dots_pass(line: str) -> None:
    (change,) = code("a\nb\n", "a\n", f"a\n{line}\n").changes
    assert change.after == f"a\n{line}\nb\n".encode()


def test_the_configuration_may_let_them_pass() -> None:
    rules = replace(RULES, elision=False)
    (change,) = code("a\n", "a\n", "# ... rest\n", rules).changes
    assert change.after == b"# ... rest\n"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("import os\\nimport sys\\n\n", True), ("a\\nb", True), ("a\\tb\n", False),
        ('print("a\\n")\nprint("b")\n', False), ("a\n", False), ("", False),
    ],
)  # fmt: skip
def test_a_new_file_of_escapes_is_refused(text: str, refused: bool) -> None:
    codes = told(planned({}, edits(("n", Create(text)))))
    assert codes == (["response.unreadable_edit"] if refused else [])


@pytest.mark.parametrize(
    ("before", "old", "new", "refused"),
    [
        (b"caf\xe9\na\n", "a\n", "\u00fc\n", True),
        (b"caf\xe9\na\n", "a\n", "b\n", False),
        (b"\xff\nx\xe9 \na\n", "a\n", "a\nb\n", False),
        ("\u00e9\na\n".encode(), "a\n", "\u00fc\n", False),
        (b"\xff\n\xc3\xa9\na\n", "\u00e9\na\n", "a\n\u00e9\n", False),
    ],
    ids=["foreign letters", "ASCII", "bytes elsewhere", "UTF-8", "a line of the file's own, moved"],
)
def test_a_file_keeps_one_encoding(before: bytes, old: str, new: str, refused: bool) -> None:
    assert told(planned(before, edits((old, new)))) == (["file.encoding"] if refused else [])


@pytest.mark.parametrize(
    ("shown", "quoting", "refused"),
    [("one\ntwo\n", True, True), ("one\n2\ntwo\n", True, False), ("one\ntwo\n", False, False)],
    ids=["beside one that is as it is", "beside one that changes, too", "by their infos"],
)
def test_files_under_path_lines_may_only_be_shown(shown: str, quoting: bool, refused: bool) -> None:
    files = {"a.txt": "one\ntwo\n", "b.txt": "three\nfour\n"}
    batch = edits(("a.txt", Write(shown, quoting)), ("b.txt", Write("three\n4\nfour\n", quoting)))
    codes = told(planned(files, batch))
    assert codes == (["response.unreadable_edit"] if refused else [])
