"""Paths and ids, compared with git's own verdict: patchq never accepts what git refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.core.model.names import batch_id
from patchq.core.model.ops import PredicateError, parse_predicate
from tests.helpers.gitrepo import git, make_repo

GOOD = [
    "a", "src/app.py", ".gitignore", ".github/x", "a b/c d.txt", "a/-rf", "~tilde", "a~1", "git~",
    "git~x", "x.git/y", ".gitx", "a..b", "...a", "déjà/vu.txt", "日本/語.txt", "emoji-😀.md",
    "console.py", "aux-file", "comx", "com10", "nul_", "c/" * 39 + "x", "x" * 255, "@{u}", "a'b",
    "#a", "$HOME", "a,b;c", "%2e%2e",
]  # fmt: skip
OUTSIDE = [
    "../x", "a/../b", "a/..", "..", "/abs", "//srv/x", "/", "~/x", "~", "~ada/x", "C:\\x", "C:/x",
    "c:x", "\\x", "\\\\srv\\x", "a\\..\\.git\\config", "..\\x",
]  # fmt: skip
GIT_SPELLINGS = [
    ".git", ".git/x", ".GIT/x", ".Git/hooks/pre-commit", "a/.git/x", "a/.git", ".git./x", ".git /x",
    ".git.../x", ".git . ./x", "git~1/x", "GIT~1", "GIT~2/x", "git~12/x",
    ".git::$INDEX_ALLOCATION/x", ".git:x", ".git\\config", "a\\.git\\x", ".g\u200cit/x",
    ".gi\ufefft/x", "\u200e.git/x", ".git\u202e/x", "．ｇｉｔ/x", "．git/x", ".g\u0131t/x",
    ".g\u0130t/x", ".\uff47it/x", "a\uff0f.git/x",
]  # fmt: skip
MALFORMED = ["", ".", "./a", "a/./b", "a/.", "a//b", "a/", "x\0y", "a\udcff"]
UNPORTABLE = [
    "-rf", "--", "-d/x", "e\u0301", "x\r", "x\n", "a\tb", "a\x1bb", "a\x7fb", "a\x85b", "a\u200bb",
    "a\u202eb", "a\u2028b", "a\ue000b", "a\uffffb", "a\\b", "dir/a:b", "x" * 256, "é" * 128,
    "d/" * 40 + "x", "xyz/" * 30 + "y" * 200 + "/" + "z" * 255 + "/" + "w" * 255 + "/" + "v" * 255,
    "a.", "a ", "a./b", "a /b", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "CON", "con.txt",
    "dir/PRN", "aux.tar.gz", "NUL", "com1", "COM\u00b9", "lpt9.log", "CONIN$", "nul .txt",
]  # fmt: skip
ALL = GOOD + OUTSIDE + GIT_SPELLINGS + MALFORMED + UNPORTABLE


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("fix-login-42", "fix-login-42"), ("Fix login!", "Fix-login"), ("a/b\\c", "a-b-c"),
        ("../../etc/passwd", "etc-passwd"), ("--force", "force"), (".hidden", "hidden"),
        ("a..b", "a.b"), ("a.LOCK.lock", "a-LOCK-lock"), ("a.report", "a-report"),
        ("a.report.md", "a-report.md"), ("a.reported", "a.reported"), ("x@{1}~^:?*[", "x-1"),
        ("x" * 200, "x" * 100), ("x" * 94 + ".report", "x" * 94 + "-repor"), ("1", "1"),
    ],
    ids=lambda v: v[:24],
)  # fmt: skip
def test_batch_id(text: str, id: str) -> None:
    assert batch_id(text) == id


def test_git_takes_every_batch_id(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    ids = {batch_id(text) for text in ALL}
    updates = "".join(f"create refs/heads/patchq/{id} HEAD\n" for id in ids)
    git("update-ref", "--stdin", cwd=repo, stdin=updates)
    listed = git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/patchq", cwd=repo)
    assert set(listed.splitlines()) == ids


@pytest.mark.parametrize(
    ("predicate", "text", "expected"),
    [
        ("contains('a')", "cat", True), ('  contains ( "it\'s" ) ', "it's", True),
        (r"contains('it\'s')", "it's", True), (r"contains('\n')", r"\n", True),
        ("!contains('a')", "dog", True), ("!!contains('a')", "dog", False),
        ("contains('a')&&contains('b')", "a", False), ("contains('a') || contains('b')", "b", True),
        ("(contains('a') || contains('b')) && contains('c')", "a", False),
        ("!(contains('a') && contains('b'))", "a", True),
        ("contains('&&') || contains(')')", "x)", True),
    ],
)  # fmt: skip
def test_matches(predicate: str, text: str, expected: bool) -> None:
    assert parse_predicate(predicate).matches(text) is expected


@pytest.mark.parametrize(
    "predicate",
    [
        "  ", "contains('')", "contains('a'", "contains(a)", "contains('a') &&", "(contains('a')",
        "contains('a') & contains('b')", "contains('a') !", "contains('a'))", "()",
        "contains('a') contains('b')", "(" * 5000 + "contains('a')" + ")" * 5000,
    ],
)  # fmt: skip
def test_what_cannot_be_read(predicate: str) -> None:
    with pytest.raises(PredicateError):
        parse_predicate(predicate)
