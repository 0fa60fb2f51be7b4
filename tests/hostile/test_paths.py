"""Hostile paths (T01-T13): patchq accepts nothing that git refuses, and its trees are sound.

The spellings are tried twice: each kind of edit on a tree held in memory, and a response for each
of them through the whole pipeline, into a repository that `git fsck --strict` judges afterwards.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.core.plan import batch
from patchq.gate.config.policy import Policy
from tests.core.model.test_names import ALL
from tests.helpers.command import block, call, errors, given, patchq
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.helpers.trees import RULES, DictTree, edits
from tests.helpers.trees import told as told_by
from tests.hostile import automatic, paths_of

ZWNJ, BOM, LRM, RLO = "\u200c", "\ufeff", "\u200e", "\u202e"
MORE = [
    *(f".g{c}it/x" for c in "\u200d\u200e\u200f\u202a\u202d\u206a\u206f"),
    *(f".git{c}modules" for c in (ZWNJ, BOM, LRM)),
    *(f"a/{name}" for name in ("git~2", "GIT~99/x", ".Git ", ".git.", ".git:x/y", ".git::$DATA")),
    ".git\\hooks\\pre-commit", "a\\.git/x", "..\\..\\x", "a/..\\x", "\\\\?\\C:\\x", "file:///x",
    "a/./../b", "./../x", ".../../x", "a/../.git/x", "%2e%2e/x", "..\u2215x", "..\uff0fx",
    "/", "//", "///etc", "a///b", "./", "../", "~root/x", "~", "C:", "c:\\x", "Z:/x", "a/C:/x",
    ".gitmodules", "GITMOD~1", "gi7eba~1", "GI7D29~4", "gi250a~2", "MAILMA~1",
    ".gitmodules ", ".gitmodules.",
    ".gitattributes", ".GITIGNORE", ".mailmap", "sub/.gitmodules",
    "aux", "a/nul.c", "PRN.txt", "COM9", "com\u00b2", "LPT1.x", "CONOUT$", "con .x", "CLOCK$",
    "a.", "a..", "a ", "a/b. ", "a\t", "a\r", "a\n", "\ta", "\x7f", "a\x80", "a\x9b31m",
    f"a{RLO}txt.exe", "a\u2066b", "a\u00adb", "a\u2060b", "\ufeffa", "a\u3164b", "\U000e0041",
    "\ufdd0", "a\uffffb", "e\u0301x", "\u212b", "\u1100\u1161",
    "-rf", "--exec=x", "-", ":", ":/x", ":(top)x", "!x", "#x", "@", "HEAD", "refs/heads/main",
    "*", "?", "a[b]c", "$(x)", "`x`", "a;b", "a|b", "a&b", "a'b", 'a"b', "<x>", "{a,b}",
    "x" * 256, "y/" * 200 + "z", "d/" * 2000 + "x", "p" * 255 + "/" + "q" * 255,
    ("n" * 250 + "/") * 5 + "x",
]  # fmt: skip
SPELLINGS = sorted({path for path in [*ALL, *MORE] if "\0" not in path})
MODES = ("100644", "100755", "120000", "160000")
TEXT = "one\n"
Entry = tuple[str, str]


def refused_by_git(repo: Path, paths: Collection[str], modes: Sequence[str] = MODES) -> set[Entry]:
    """The modes and paths that git does not take into its index, however it is configured."""
    refused: set[Entry] = set()
    for protect in ("true", "false"):
        for name in ("core.protectHFS", "core.protectNTFS"):
            git("config", name, protect, cwd=repo)
        for mode in modes:
            oid = git("rev-parse", "HEAD" if mode == "160000" else "HEAD:a", cwd=repo)
            left = [path for path in paths if (mode, path) not in refused]
            refused |= {(mode, path) for path in _refused(repo, mode, oid, left)}
    return refused


def _refused(repo: Path, mode: str, oid: str, paths: Sequence[str]) -> Iterator[str]:
    entries = "".join(f"{mode} {oid}\t{path}\0" for path in paths)
    done = subprocess.run(
        ["git", "update-index", "-z", "--index-info"],
        cwd=repo, input=entries.encode("utf-8", "surrogateescape"), capture_output=True,
        check=False, timeout=60,
    )  # fmt: skip
    (repo / ".git/index").unlink(missing_ok=True)
    if done.returncode == 0 and b"Ignoring path" not in done.stderr:
        return
    if len(paths) == 1:
        yield paths[0]
        return
    for half in (paths[: len(paths) // 2], paths[len(paths) // 2 :]):
        yield from _refused(repo, mode, oid, half)


OPS: dict[str, Op] = {
    "create": Create(TEXT),
    "edit": Replace(TEXT, "two\n"),
    "delete": DeleteFile(),
    "rename-away": Rename("elsewhere.txt"),
}


def in_memory(path: str, how: str) -> list[str]:
    """The codes with which patchq refuses; the file exists where the edit needs it."""
    if how == "rename-to":
        plan = batch.plan(edits(("here.txt", Rename(path))), DictTree({"here.txt": TEXT}), RULES)
    else:
        files = {"here.txt": TEXT} if how == "create" else {"here.txt": TEXT, path: TEXT}
        plan = batch.plan(edits((path, OPS[how])), DictTree(files), RULES)
    return told_by(plan)


def test_t01_t02_t03_t04_patchq_takes_no_path_that_git_refuses(tmp_path: Path) -> None:
    """Nor does it make a link or a submodule anywhere; so what git refuses as a link alone, its own
    files, may be a plain file, which a person looks at."""
    repo = make_repo(tmp_path / "repo", {"a": "x"})
    assert len(SPELLINGS) >= 150
    refused = refused_by_git(repo, SPELLINGS)
    files = {path for mode, path in refused if mode in ("100644", "100755")}
    assert len(files) >= 50, "git's verdict was not heard"
    ways = (*OPS, "rename-to")
    assert [(how, path) for how in ways for path in sorted(files) if not in_memory(path, how)] == []
    links = {path for mode, path in refused if mode == "120000"} - files
    assert ".gitmodules" in links
    policy = Policy()
    assert [
        path
        for path in links
        if not in_memory(path, "create") and not policy.review(path, existed=True)
    ] == []


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = dict.fromkeys(("a.txt", "src/app.py", "straße", "é.txt", "README.md"), TEXT)
    repo = make_repo(tmp_path / "repo", files)
    (repo / "link").symlink_to("src")
    (repo / "out").symlink_to("../..")
    (repo / "into").symlink_to(".git")
    git("add", ".", cwd=repo)
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor", cwd=repo)
    git("commit", "-qm", "links", cwd=repo)
    patchq("init", cwd=repo)
    write_config(repo, "version: 1\nmode: auto\ntarget: trunk\n")
    git("branch", "trunk", cwd=repo)
    return repo


def test_t01_t02_t03_every_spelling_lands_nowhere_wrong(repo: Path) -> None:
    before = sorted(path for path in repo.parent.rglob("*") if ".patchq" not in path.parts)
    by_name = {f"r{number}": path for number, path in enumerate(SPELLINGS)}
    reports = given(repo, {name: call(path) for name, path in by_name.items()})
    assert reports.keys() == by_name.keys()
    landed = {name: told for name, told in reports.items() if told["commit"]}
    assert len(landed) >= 30, "nothing was tried"
    changed = [entry for told in landed.values() for entry in paths_of(repo, told["commit"])]
    assert {mode for mode, _ in changed} == {"100644"}
    oracle = make_repo(repo.parent / "oracle", {"a": "x"})
    assert not refused_by_git(oracle, {path for _, path in changed}, MODES[:1])
    for name, told in reports.items():
        if told["state"] == "rejected":
            assert errors(told), f"{by_name[name]!r} was refused without a reason"
    after = {path for path in repo.parent.rglob("*") if ".patchq" not in path.parts}
    outside = {path for path in after - {*before} if repo not in path.parents}
    assert all(path.is_relative_to(oracle) for path in outside)


DIFF = "diff --git a/{path} b/{path}\n{more}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize("mode", ["120000", "160000"])
@pytest.mark.parametrize("path", [".gitmodules", "gitmod~1", "a/n"])
def test_t04_t05_t06_no_link_and_no_submodule_is_made(repo: Path, path: str, mode: str) -> None:
    text = DIFF.format(path=path, more=f"new file mode {mode}\n")
    assert patchq("apply", "-", cwd=repo, stdin=text, code=1)
    assert "120000" not in git("diff-tree", "-r", "main", "trunk", cwd=repo)
    assert git("rev-parse", "main", cwd=repo) == git("rev-parse", "trunk", cwd=repo)


REFUSED = {
    "t05-below-a-submodule": (call("vendor/x"), "path.not_a_file"),
    "t05-a-submodule": (block("vendor", "1\n", "2\n"), "path.not_a_file"),
    "t06-through-a-link": (call("link/x.py"), "path.not_a_file"),
    "t06-through-a-link-outside": (call("out/x"), "path.not_a_file"),
    "t06-through-a-link-into-git": (call("into/hooks/pre-commit"), "path.not_a_file"),
    "t06-the-links-target": (block("link", "src\n", "../..\n"), "path.not_a_file"),
    "t06-a-file-for-a-link": (call("link"), "path.not_a_file"),
    "t07-a-file-for-a-directory": (call("src"), "path.not_a_file"),
    "t07-below-a-file": (call("a.txt/x"), "path.not_a_file"),
    "t08-case": (call("readme.MD"), "path.exists"),
    "t08-case-of-a-directory": (call("SRC/new.py"), "path.exists"),
    "t08-alphabet": (call("re\u0430dme.md"), "path.exists"),
    "t08-an-option": (call("-rf"), "path.invalid"),
    "t08-composition": (call("e\u0301.txt"), "path.invalid"),
    "t08-sharp-s": (call("STRASSE"), "path.exists"),
    "t09-device": (call("CON"), "path.invalid"),
    "t09-device-in-superscript": (call("COM\u00b9"), "path.invalid"),
    "t10-direction": (call(f"x{RLO}gpj.exe"), "path.invalid"),
    "t10-escape": (call("x\x1b[31my"), "path.invalid"),
    "t11-component": (call("x" * 256), "path.invalid"),
    "t11-path": (call("/".join(["x" * 200] * 6)), "path.invalid"),
    "t11-depth": (call("d/" * 500 + "x"), "path.invalid"),
}


def test_t05_to_t12_are_refused_with_their_codes(repo: Path) -> None:
    reports = given(repo, {name: text for name, (text, _) in REFUSED.items()})
    got = {name: errors(told) for name, told in reports.items()}
    assert got == {name: [code] for name, (_, code) in REFUSED.items()}
    assert git("rev-parse", "main", cwd=repo) == git("rev-parse", "trunk", cwd=repo)


def test_t07_a_directory_may_take_the_place_of_a_file_that_the_batch_deletes(repo: Path) -> None:
    base = git("rev-parse", "trunk", cwd=repo)
    gone = "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n"
    gone += "@@ -1 +0,0 @@\n-one\n"
    new = DIFF.format(path="a.txt/x.md", more="new file mode 100644\n")
    told = given(repo, {"swap": f"---\nbase: {base}\n---\n{gone}{new}"})["swap"]
    assert told["state"] == "applied", told["problems"]
    assert git("show", "trunk:a.txt/x.md", cwd=repo) == "x"


def test_t12_no_file_becomes_executable_unseen(repo: Path) -> None:
    new = DIFF.format(path="run.sh", more="new file mode 100755\n")
    alone = "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n"
    more = f"{alone}--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
    for name, told in given(repo, {"new": new, "more": more, "alone": alone}).items():
        assert told["state"] == "proposed", name
        assert [mode for mode, _ in paths_of(repo, told["commit"])] == ["100755"], name
        assert [problem["code"] for problem in told["problems"]] == ["path.review"]


def deletions(repo: Path, paths: list[str]) -> str:
    """A response that deletes the files and says which base it saw."""
    blocks = "".join(f"{path}\n<<<<<<< DELETE\n>>>>>>> DELETE\n" for path in paths)
    return f"---\nbase: {git('rev-parse', 'trunk', cwd=repo)}\n---\n{blocks}"


@pytest.mark.parametrize(
    ("count", "left", "state"), [(20, 1, "applied"), (21, 1, "proposed"), (2, 0, "proposed")]
)
def test_t13_deleting_much_or_everything_asks_for_review(
    tmp_path: Path, count: int, left: int, state: str
) -> None:
    names = [f"f{number}.txt" for number in range(count + left)]
    repo = automatic(tmp_path, dict.fromkeys(names, TEXT))
    told = given(repo, {"gone": deletions(repo, names[:count])})["gone"]
    assert told["state"] == state
    warned = [problem["code"] for problem in told["problems"]]
    assert warned == (["path.review"] if state == "proposed" else [])


def test_t13_deleting_what_is_denied_or_reviewed(tmp_path: Path) -> None:
    names = ["Makefile", "key.pem", "x.txt"]
    repo = automatic(tmp_path, dict.fromkeys(names, TEXT))
    reports = given(repo, {path: deletions(repo, [path]) for path in names[:2]})
    assert errors(reports["key.pem"]) == ["path.denied"]
    assert reports["Makefile"]["state"] == "proposed"
