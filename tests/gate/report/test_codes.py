"""The codes of reports: closed, documented, and the only ones that the package uses."""

from __future__ import annotations

import ast
import re

from patchq.gate.report.codes import CODES
from tests.helpers import report_codes
from tests.helpers.pages import ROOT

# The contract, letter by letter.
CONTRACT = """
response: no_edits unreadable_edit truncated incomplete beside too_large not_text
frontmatter: unknown_key duplicate_key value target base
path: invalid outside denied review not_found exists not_a_file new_directory filtered
file: unreadable binary encoding
match: none ambiguous count identical
anchor: none invented ambiguous
conflict: overlap order base pending
base: unknown
edit: elided shrinks dependency confidence secret
result: syntax
hook: refused timeout
worktree: dirty unseen
target: moved red busy
depends: failed
review: changes
llm: not_configured timeout rate_limited server answer
repository: damaged
fault: repository disk database crashed in_doubt hook
"""
FILE_SUFFIXES = (".html", ".json", ".md", ".py", ".yaml")


def test_the_list_is_the_contracts() -> None:
    families = (line.split(":") for line in CONTRACT.strip().splitlines())
    assert list(CODES) == [
        f"{family}.{name}" for family, names in families for name in names.split()
    ]


def test_the_documentation_is_written_from_the_table() -> None:
    assert report_codes.PAGE.read_text(encoding="utf-8") == report_codes.made()


def test_the_package_uses_no_other_code() -> None:
    families = {name.split(".")[0] for name in CODES}
    looks_like_one = re.compile(rf"(?:{'|'.join(families)})\.[a-z_]+")
    strangers = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in sorted((ROOT / "patchq").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if not re.search(
            "gate/api/__init__|service/check", str(path)
        )  # findings have names of their own
        and isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and looks_like_one.fullmatch(node.value)
        and node.value not in CODES
        and not node.value.endswith(FILE_SUFFIXES)
    ]
    assert not strangers
