"""Which file an edit speaks of, and whether it may."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.core.plan import batch
from patchq.core.plan.targets import EditRefused, NewPaths
from tests.helpers.trees import RULES, DictTree, edits, told

TREE = DictTree(
    {
        "src/app.py": "a\n",
        "README": "r\n",
        "bin.dat": b"\0",
        "lfs.bin": "pointer\n",
        "x.txt": "x\n",
    },
    others={"link": "link", "vendor": "submodule"},
    filters={"lfs.bin": "lfs", "new.bin": "lfs", "moved.bin": "lfs"},
)
EDIT = Replace("a\n", "b\n")
DENYING = replace(RULES, denied=lambda path: "by test" if path.endswith(".env") else None)


@pytest.mark.parametrize(
    ("path", "op", "code"),
    [
        ("../x", EDIT, "path.outside"), ("/etc/passwd", EDIT, "path.outside"),
        ("a/../../x", Create("x\n"), "path.outside"), (".git/config", EDIT, "path.invalid"),
        ("a//b", Create("x\n"), "path.invalid"), ("", EDIT, "path.invalid"),
        ("COM1", Create("x\n"), "path.invalid"), ("a.env", Create("x\n"), "path.denied"),
        ("a.env", EDIT, "path.denied"), ("x.txt", Rename("b.env"), "path.denied"),
        ("nowhere.py", EDIT, "path.not_found"), ("nowhere.py", DeleteFile(), "path.not_found"),
        ("src", EDIT, "path.not_a_file"), ("link", EDIT, "path.not_a_file"),
        ("link", Create("x\n"), "path.not_a_file"), ("vendor", DeleteFile(), "path.not_a_file"),
        ("vendor/x", Create("x\n"), "path.not_a_file"),
        ("README/x", Create("x\n"), "path.not_a_file"), ("README/x", EDIT, "path.not_a_file"),
        ("x.txt", Rename("src"), "path.not_a_file"),
        ("x.txt", Rename("README/x"), "path.not_a_file"), ("bin.dat", EDIT, "file.binary"),
        ("lfs.bin", EDIT, "path.filtered"), ("lfs.bin", DeleteFile(), "path.filtered"),
        ("new.bin", Create("x\n"), "path.filtered"),
        ("x.txt", Rename("moved.bin"), "path.filtered"), ("README", Create("x\n"), "path.exists"),
        ("readme", Create("x\n"), "path.exists"), ("SRC/new.py", Create("x\n"), "path.exists"),
        ("x.txt", Rename("src/app.py"), "path.exists"), ("-rf", Create("x\n"), "path.invalid"),
        ("--/x", Create("x\n"), "path.invalid"), ("x.txt", Rename("-x.txt"), "path.invalid"),
        ("x.txt", Rename("RE\u0410DME"), "path.exists"),
    ],
)  # fmt: skip
def test_refused(path: str, op: Op, code: str) -> None:
    plan = batch.plan(edits((path, op)), TREE, DENYING)
    assert told(plan) == [code]
    assert plan.problems[0].hint
    assert plan.changes == ()


def test_a_large_file_is_not_edited() -> None:
    plan = batch.plan(edits(("x.txt", EDIT)), TREE, replace(RULES, file_bytes=1))
    assert told(plan) == ["file.unreadable"]


@pytest.mark.parametrize(
    ("path", "refused"), [("lib/n.py", True), ("src/n.py", False), ("n", False)]
)
def test_new_directories_may_be_forbidden(path: str, refused: bool) -> None:
    rules = replace(RULES, new_directories=False)
    plan = batch.plan(edits((path, Create("x\n"))), TREE, rules)
    assert told(plan) == (["path.new_directory"] if refused else [])


TWINS = [
    ("README", "RE\u0410DME", "\\u0410"), ("README", "\uff32EADME", "\\uff32"),
    ("README", "README\u3164", "\\u3164"), ("README\u200b", "README", "\\u200b"),
    ("readme", "R\u0435adme", "\\u0435"), ("src", "s\u1d26c", "\\u1d26"),
    ("module.py", "moduIe.py", "moduIe.py"), ("v0.md", "vO.md", "vO.md"),
    ("a-b", "a\u2010b", "\\u2010"), ("\u0441\u043e\u0440", "cop", "\\u0441"),
    ("file.txt", "\ufb01le.txt", "\\ufb01"), ("caf\u00e9", "c\u0430f\u00e9", "\\u0430"),
]  # fmt: skip


@pytest.mark.parametrize(("there", "new", "shown"), TWINS)
@pytest.mark.parametrize("frame", ["{}", "lib/{}", "{}/n.txt"])
def test_look_alike_twins_are_refused_and_named(
    there: str, new: str, shown: str, frame: str
) -> None:
    old, path = frame.format(there), frame.format(new)
    plan = batch.plan(edits((path, Create("z\n"))), DictTree({old: "x\n"}), RULES)
    assert told(plan) in (["path.exists"], ["path.invalid"])
    (problem,) = plan.problems
    assert problem.hint
    if problem.code == "path.exists":
        assert shown in problem.message
        assert there in problem.message or not there.isascii()
    batch_of_two = NewPaths()
    batch_of_two.add(old)
    with pytest.raises(EditRefused):
        batch_of_two.add(path)


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("a", "A", "path.exists"), ("d/a", "D/b", "path.exists"), ("a", "a/b", "path.not_a_file"),
        ("a/b", "a", "path.not_a_file"), ("é", "e\u0301", "path.exists"),
    ],
)  # fmt: skip
def test_new_paths_that_stand_in_each_others_way(first: str, second: str, code: str) -> None:
    new = NewPaths()
    new.add(first)
    with pytest.raises(EditRefused) as refusal:
        new.add(second)
    assert refusal.value.problem.code == code
