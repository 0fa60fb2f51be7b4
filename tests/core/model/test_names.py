"""Paths and ids, compared with git's own verdict: patchq never accepts what git refuses."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.names import (
    batch_id,
    check_path,
    nearest,
    spells_git,
)
from patchq.core.model.predicate import PredicateError, parse
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
MALFORMED = [
    "", ".", "./a", "a/./b", "a/.", "a//b", "a/", "x\0y", "a\udcff",
]  # fmt: skip
UNPORTABLE = [
    "-rf", "--", "-d/x", "e\u0301", "x\r", "x\n", "a\tb", "a\x1bb", "a\x7fb", "a\x85b", "a\u200bb",
    "a\u202eb", "a\u2028b", "a\ue000b", "a\uffffb", "a\\b", "dir/a:b", "x" * 256, "é" * 128,
    "d/" * 40 + "x", "xyz/" * 30 + "y" * 200 + "/" + "z" * 255 + "/" + "w" * 255 + "/" + "v" * 255,
    "a.", "a ", "a./b", "a /b", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "CON", "con.txt",
    "dir/PRN", "aux.tar.gz", "NUL", "com1", "COM\u00b9", "lpt9.log", "CONIN$", "nul .txt",
]  # fmt: skip
ALL = GOOD + OUTSIDE + GIT_SPELLINGS + MALFORMED + UNPORTABLE


def short(path: str) -> str:
    return ascii(path)[:40]


INVALID, OUT = "path.invalid", "path.outside"
JUDGED = [
    *((path, None, None) for path in GOOD),
    *((path, INVALID, INVALID) for path in (*GIT_SPELLINGS, *MALFORMED)),
    *((path, INVALID, None) for path in UNPORTABLE),
    *((path, OUT, OUT) for path in ("../x", "a/..", "/abs", "\\x", "a\\..\\b")),
]


@pytest.mark.parametrize(("path", "new", "there"), JUDGED, ids=lambda path: short(str(path)))
def test_a_path_is_judged_by_its_text(path: str, new: str | None, there: str | None) -> None:
    for exists, code in ((False, new), (True, there)):
        flaw = check_path(path, exists=exists)
        assert (flaw and flaw.code) == code
        assert spells_git(path) == (path in GIT_SPELLINGS)
        assert path not in GIT_SPELLINGS or (flaw and "`.git`" in flaw.reason)


@pytest.mark.parametrize("path", OUTSIDE, ids=short)
def test_path_outside(path: str) -> None:
    flaw = check_path(path)
    assert flaw is not None
    assert flaw.code == OUT


def test_patchq_never_accepts_what_git_refuses(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    git("config", "core.protectHFS", "true", cwd=repo)
    git("config", "core.protectNTFS", "true", cwd=repo)
    blob = git("hash-object", "-w", "--stdin", cwd=repo, stdin="x")
    refused = set()
    paths = [path for path in ALL if "\0" not in path]
    for path in paths:
        entry = f"100644 {blob}\t{path}\0".encode("utf-8", "surrogateescape")
        done = subprocess.run(
            ["git", "update-index", "-z", "--index-info"], cwd=repo, input=entry, check=False,
            capture_output=True,
        )  # fmt: skip
        if done.returncode or b"Ignoring path" in done.stderr:
            refused.add(path)
    assert len(paths) >= 120
    assert len(refused) >= 25, "git's verdict was not heard"
    assert refused.isdisjoint(GOOD)
    assert [path for path in refused if check_path(path) is None] == []
    assert [path for path in refused if check_path(path, exists=True) is None] == []


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("fix-login-42", "fix-login-42"), ("Fix login!", "Fix-login"), ("a/b\\c", "a-b-c"),
        ("../../etc/passwd", "etc-passwd"), ("--force", "force"), (".hidden", "hidden"),
        ("a..b", "a.b"), ("a.lock", "a-lock"), ("a.LOCK.lock", "a-LOCK-lock"),
        ("a.report", "a-report"), ("a.report.json", "a-report.json"),
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


def test_nearest_suggests_only_what_is_near() -> None:
    assert nearest("Tagret", ["mode", "model", "target"]) == "target"
    assert nearest("zzz", ["mode", "model", "target"]) is None
    assert nearest("x", []) is None


# ---------------------------------------------------------------- predicates over paragraphs


@pytest.mark.parametrize(
    ("predicate", "text", "expected"),
    [
        ("contains('a')", "cat", True), ('  contains ( "it\'s" ) ', "it's", True),
        (r"contains('it\'s')", "it's", True), (r"contains('\n')", r"\n", True),
        ("!contains('a')", "dog", True), ("!!contains('a')", "dog", False),
        ("contains('a') && contains('b')", "ab", True),
        ("contains('a')&&contains('b')", "a", False), ("contains('a') || contains('b')", "b", True),
        ("(contains('a') || contains('b')) && contains('c')", "a", False),
        ("!(contains('a') && contains('b'))", "a", True),
        ("contains('&&') || contains(')')", "x)", True),
    ],
)  # fmt: skip
def test_matches(predicate: str, text: str, expected: bool) -> None:
    assert parse(predicate).matches(text) is expected


@pytest.mark.parametrize(
    "predicate",
    [
        "", "  ", "contains", "contains('')", "contains('a'", "contains(a)", "contains('a') &&",
        "&& contains('a')", "contains('a') & contains('b')", "contains('a') !", "(contains('a')",
        "contains('a'))", "()", "0", "contains('a') contains('b')", "contains('a') and 1",
        "(contains('a'))(contains('b'))", "(" * 5000 + "contains('a')" + ")" * 5000,
    ],
)  # fmt: skip
def test_what_cannot_be_read(predicate: str) -> None:
    with pytest.raises(PredicateError):
        parse(predicate)


@given(
    st.lists(
        st.sampled_from(["contains('a')", 'contains("b")', "&&", "||", "!", "(", ")", " ", "x"]),
        max_size=30,
    ).map("".join),
    st.text(alphabet="abx"),
)
def test_every_text_is_a_predicate_or_none(predicate: str, text: str) -> None:
    with suppress(PredicateError):
        assert parse(predicate).matches(text) in (True, False)
