"""Which file an edit speaks of, and whether it may."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.core.plan import batch
from tests.helpers.trees import RULES, DictTree, edits, told

TREE = DictTree(
    {
        "src/app.py": "a\n",
        "README": "r\n",
        "lfs.bin": "pointer\n",
        "x.txt": "x\n",
    },
    others={"link": "link", "vendor": "submodule"},
    filters={"lfs.bin": "lfs", "moved.bin": "lfs"},
)
EDIT = Replace("a\n", "b\n")
DENYING = replace(RULES, denied=lambda path: "by test" if path.endswith(".env") else None)


@pytest.mark.parametrize(
    ("path", "op", "code"),
    [
        ("a/../../x", Create("x\n"), "path.outside"), ("a//b", Create("x\n"), "path.invalid"),
        ("", EDIT, "path.invalid"), ("/etc/passwd", EDIT, "path.outside"),
        ("COM1", Create("x\n"), "path.invalid"),
        ("x.txt", Rename("b.env"), "path.denied"), ("nowhere.py", DeleteFile(), "path.not_found"),
        ("link", Create("x\n"), "path.not_a_file"), ("vendor", DeleteFile(), "path.not_a_file"),
        ("vendor/x", Create("x\n"), "path.not_a_file"), ("README/x", EDIT, "path.not_a_file"),
        ("x.txt", Rename("src"), "path.not_a_file"),
        ("x.txt", Rename("README/x"), "path.not_a_file"),
        ("lfs.bin", DeleteFile(), "path.filtered"), ("x.txt", Rename("moved.bin"), "path.filtered"),
        ("SRC/new.py", Create("x\n"), "path.exists"), ("--/x", Create("x\n"), "path.invalid"),
        ("x.txt", Rename("-x.txt"), "path.invalid"),
        ("x.txt", Rename("RE\u0410DME"), "path.exists"),
    ],
)  # fmt: skip
def test_refused(path: str, op: Op, code: str) -> None:
    plan = batch.plan(edits((path, op)), TREE, DENYING)
    assert told(plan) == [code]
    assert plan.problems[0].hint
    assert plan.changes == ()


@pytest.mark.parametrize(
    ("path", "refused"), [("lib/n.py", True), ("src/n.py", False), ("n", False)]
)
def test_new_directories_may_be_forbidden(path: str, refused: bool) -> None:
    rules = replace(RULES, new_directories=False)
    plan = batch.plan(edits((path, Create("x\n"))), TREE, rules)
    assert told(plan) == (["path.new_directory"] if refused else [])
