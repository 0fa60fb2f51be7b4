"""The codes of reports: closed, documented, and the only ones that the package uses."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from patchq.gate.report import codes
from patchq.gate.report.codes import CODES

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "report-codes.md"

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
ALIASES = {
    "match.none": "EDIT_NO_OCCURRENCE_FOUND",
    "match.count": "EDIT_EXPECTED_OCCURRENCE_MISMATCH",
    "path.invalid": "EDIT_INVALID_PATH",
    "path.outside": "EDIT_INVALID_PATH",
    "file.unreadable": "EDIT_FILE_READ_ERROR",
    "path.not_found": "EDIT_FILE_NOT_FOUND",
    "path.exists": "ATTEMPT_TO_CREATE_EXISTING_FILE",
}


def test_the_list_is_the_contracts() -> None:
    families = (line.split(":") for line in CONTRACT.strip().splitlines())
    assert list(CODES) == [
        f"{family}.{name}" for family, names in families for name in names.split()
    ]


def test_older_names_live_on_as_aliases() -> None:
    assert {code.name: code.alias for code in CODES.values() if code.alias} == ALIASES


def test_the_documentation_is_written_from_the_table() -> None:
    assert DOCS.read_text(encoding="utf-8") == codes.to_markdown()


@pytest.mark.parametrize("name", CODES)
def test_every_code_is_documented_once_with_cause_and_cure(name: str) -> None:
    code = CODES[name]
    page = DOCS.read_text(encoding="utf-8")
    section = f"## `{name}`\n\n**Cause:** {code.cause}\n\n**Cure:** {code.cure}\n"
    assert page.count(f"## `{name}`\n") == page.count(section) == 1
    for text in (code.cause, code.cure):
        assert text[0].isupper()
        assert text.endswith(".")


def test_the_package_uses_no_other_code() -> None:
    families = {name.split(".")[0] for name in CODES}
    looks_like_one = re.compile(rf"(?:{'|'.join(families)})\.[a-z_]+")
    strangers = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in sorted((ROOT / "patchq").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if not re.search("doctor|service/check", str(path))  # findings have names of their own
        and isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and looks_like_one.fullmatch(node.value)
        and node.value not in CODES
        and not node.value.endswith(FILE_SUFFIXES)
    ]
    assert not strangers
