"""What comes of a plan: elisions, escapes, encodings, whole files, and what has to parse."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import Create, DeleteFile, Op, Replace, ReplaceText, Write
from patchq.core.model.values import Edit, FileChange, Plan
from patchq.core.plan.batch import plan as plan_of
from patchq.core.plan.syntax import MAX_BYTES, unparsable
from patchq.core.plan.targets import PlanRules
from tests.helpers.trees import RULES, DictTree, edits, planned, result, told
from tests.helpers.trees import batch as ops_of


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


@pytest.mark.parametrize(
    ("before", "old", "new", "refused"),
    [
        (b"caf\xe9\na\n", "a\n", "\u00fc\n", True),  # foreign letters
        ("\u00e9\na\n".encode(), "a\n", "\u00fc\n", False),  # UTF-8
        (b"\xff\n\xc3\xa9\na\n", "\u00e9\na\n", "a\n\u00e9\n", False),
    ],
)  # fmt: skip
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


BASE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
ONE = "    return 1\n"
LOST = ReplaceText(ONE, '    x = \\"one\\"\\n    return x\\n')
MADE = BASE.replace(ONE, '    x = "one"\n    return x\n')


def unescaped(*ops: Op, path: str = "f.py", base: str = BASE, judged: bool = True) -> str:
    """The file's new text; none where the edits are refused."""
    edits = [Edit(str(i), "edit_calls", (1, 1), path, op) for i, op in enumerate(ops, 1)]
    rules = replace(RULES, judged=lambda path: judged)
    (change,) = plan_of(edits, DictTree({path: base}), rules).changes
    assert change.after is not None
    return change.after.decode()


@pytest.mark.parametrize(
    ("op", "result"),
    [
        (LOST, MADE),
        (ReplaceText(LOST.old, LOST.new, at=(1,)), MADE),
        (Replace(LOST.old, LOST.new + "\n"), MADE),
        (ReplaceText(ONE, "    return '\\n'\n"), BASE.replace("1", "'\\n'")),
        (ReplaceText(ONE, '    return ("\\n"\n'), BASE.replace("1", '("\\n"')),
        (ReplaceText(ONE, '    x = \\"a\\"\\n    return "\\t"\n'),
            BASE.replace(ONE, '    x = \\"a\\"\\n    return "\\t"\n')),
    ],
)  # fmt: skip
def test_new_text_is_unescaped_where_only_that_parses(op: Op, result: str) -> None:
    assert unescaped(op) == result


def test_only_the_edit_that_breaks_the_file_is_unescaped() -> None:
    kept = ReplaceText("    return 2\n", "    return '\\t'\n")
    result = MADE.replace("2", "'\\t'")
    assert unescaped(LOST, kept) == unescaped(kept, LOST) == result


def test_all_are_unescaped_if_no_single_one_makes_the_file_parse() -> None:
    other = ReplaceText("    return 2\n", '    y = \\"two\\"\\n    return y\\n')
    result = MADE.replace("    return 2\n", '    y = "two"\n    return y\n')
    assert unescaped(LOST, other) == result


TEN = "".join(f"{i}\n" for i in range(10))


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("a\nb\n", "a\nc\n", "a\nc\n"), ("a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nd\n", "a\r\nb\nd\r\n"), ("a\nb", "a\nc\n", "a\nc\n"),
        ("a\nb\n", "a\nc", "a\nc"), ("a\nb", "a\nb\n", "a\nb\n"),
        ("\ufeffa\nb\n", "a\nc\n", "\ufeffa\nc\n"),
        ("\ufeffa\nb\n", "\ufeffa\nc\n", "\ufeffa\nc\n"), ("a\r\nb\r\n", "a\nb\n", "already"),
        ("a\nb\n", "a\nb\n", "already"), ("", "a\n", "a\n"),
        (TEN, "0\n1\n2\n3\n4\n", "0\n1\n2\n3\n4\n"), (TEN, "0\n1\n2\n3\n\n\n\n", "edit.shrinks"),
        (TEN, "", "edit.shrinks"), ("a\n\0", "b\n", "file.binary"),
    ],
    ids=[
        "a line", "CRLF", "mixed", "a newline at the end", "none at the end", "the newline alone",
        "BOM", "BOM in both", "the same but its line ends", "the same", "an empty file", "half",
        "less than half", "emptied", "binary",
    ],
)  # fmt: skip
def test_write(before: str, text: str, after: str) -> None:
    assert result(before, Write(text)) == after


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (TEN.replace("5\n", "five\n"), True),  # one line changed
        (TEN.replace("0\n", "zero\n"), True),  # nine in ten
        ("0\n1\n2\n3\n4\nx\n9\n", True),  # the ends and half of the others
        ("0\n1\n2\n3\nx\n9\n", False),  # the ends and less than half
        (TEN.replace("0\n", "zero\n").replace("5\n", "five\n"), False),
        ("9\n" + TEN[2:-2] + "0\n", False),  # another order
    ],
)  # fmt: skip
def test_what_may_be_an_excerpt_has_to_keep_most(text: str, written: bool) -> None:
    done = result(TEN, Write(text, quoting=True))
    assert done == (text if written else "response.unreadable_edit")


@pytest.mark.parametrize(
    ("before", "old", "code"),
    [
        ("a\nb\n", "a\nb\n", None), ("a\r\nb", "a\nb\n", None), ("a\nb\n", "a\n", "match.none"),
        ("a\nb\n", "a\nc\n", "match.none"), ("x\nx\n", "x\n", "match.none"), ("", "", None),
        ("a\n", "", "match.none"),
    ],
)  # fmt: skip
def test_a_deletion_may_quote_the_file(before: str, old: str, code: str | None) -> None:
    done = planned(before, ops_of(DeleteFile(old)))
    assert told(done) == ([code] if code else [])
    assert [change.after for change in done.changes] == ([] if code else [None])


PASSES = {
    "python": ("a.py", b"x = 1\n", b"x = 2\n"),
    "python-was-broken": ("a.py", b"x = (\n", b"x = ((\n"),
    "python-names": ("a.py", b"x = 1\n", b"def f(a, a):\n    global a\n"),
    "python-coding": ("a.py", b"x = 1\n", b"# coding: latin-1\nx = '\xe9'\n"),
    "json-with-comments": ("a.json", b"{}\n", b'// c\n{"a": [1, 2,], /* d */}\n'),
    "yaml-with-tags": ("a.yml", b"a: 1\n", b"a: !ref x\n---\nb: 2\n"),
    "toml": ("a.toml", b"a = 1\n", b"a = 2\n"),
    "unknown-language": ("a.zig", b"fn a() {}\n", b"fn a( {\n"),
    "template": ("a.yaml", b"a: 1\n", b"a: {{ x }}\n{% if %}\n"),
    "was-a-template": ("a.py", b"x = {{ y }} {% z %}\n", b"x = (\n"),
    "becomes-a-template": ("a.py", b"x = 1\n", b"import {{ name }}\n"),
    "a-template's-file": ("a.json", None, b'{"a": {{ x }}}\n'),
    "deletion": ("a.py", b"x = 1\n", None),
    "too-large": ("a.py", b"x = 1\n", b"(" * (MAX_BYTES + 1)),
    "byte-order-mark": ("a.json", None, b"\xef\xbb\xbf{}\n"),
}


@pytest.mark.parametrize(("path", "before", "after"), PASSES.values(), ids=PASSES)
def test_passes(path: str, before: bytes | None, after: bytes | None) -> None:
    assert unparsable(FileChange(path, before, after)) is None


REFUSED = {
    "python": ("a.py", b"x = 1\n", b"x = 1\ny = (\n", 2),
    "python-with-more-braces": ("a.py", b"x = 1\n", b"x = '{{'\ny = '{%'\ndef broken(:\n", 3),
    "a workflow": ("a.yml", b"a: ${{ x }}\n", b"a: ${{ x }}\nb: [\n", 3),
    "python-nul": ("a.py", b"x = 1\n", b"x = '\0'\n", 1),
    "json": ("a.json", b"{}\n", b'{\n "a": 1\n "b": 2}\n', 3),
    "json-bytes": ("a.json", b"{}\n", b'{\n"a": "\xff"}\n', 2),
    "toml": ("a.toml", b"a = 1\n", b"a = 1\nb = \n", 2),
    "new": ("a.py", None, b"def f(:\n", 1),
}


@pytest.mark.parametrize(("path", "before", "after", "line"), REFUSED.values(), ids=REFUSED)
def test_refused(path: str, before: bytes | None, after: bytes, line: int) -> None:
    problem = unparsable(FileChange(path, before, after))
    assert problem is not None
    assert (problem.code, problem.path) == ("result.syntax", path)
    assert f"line {line}" in problem.message
    assert problem.excerpt is not None
