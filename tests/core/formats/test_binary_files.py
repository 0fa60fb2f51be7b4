"""Whole binary files in responses: what `git diff --binary` and other forms say of them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

NOISE = random.Random(1).randbytes(6000)
FILES: dict[str, bytes | str] = {
    "x.bin": b"\0one" + NOISE,
    "y.bin": b"\0two",
    "empty": "",
    "a.txt": "a\n",
    "tool": b"\0\x7fELF",
}
ONE = "5626abf0f72e58d7a153368ba57db4c673c0e171"
"""The id of a file that holds `one`."""
CONFIG = "version: 1\nmode: auto\ntarget: main\npaths: {review: ['!*']}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository in auto mode; `work` is checked out."""
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / "tool").chmod(0o755)
    commit_files(repo, {".patchq.yaml": CONFIG})
    patchq("init", cwd=repo)
    git("checkout", "-q", "-b", "work", cwd=repo)
    return repo


RENAMED = "mkdir dir; git mv y.bin dir/z.bin; printf end >> dir/z.bin"
CHANGES = {
    "deleted": "rm x.bin y.bin",
    "a deleted empty file": "rm empty",
    "renamed and changed": RENAMED,
    "renamed and made plain": "git mv tool tool2; chmod 644 tool2",
    "emptied": "> x.bin; > y.bin",
    "made, empty": "> new",
    "all at once": f"{RENAMED}; printf '\\0three' > x.bin; cp tool new; echo b > a.txt; rm tool",
}


def change(repo: Path, script: str) -> str:
    """Run the script on `work` and commit; its difference from `main`."""
    subprocess.run(["sh", "-ec", script], cwd=repo, check=True, timeout=60)
    commit_files(repo, {})
    return git("diff", "--binary", "-M", "main", "work", cwd=repo) + "\n"


@pytest.mark.parametrize("script", CHANGES.values(), ids=CHANGES)
def test_a_diff_of_bytes_is_read(repo: Path, script: str) -> None:
    diff = change(repo, script)
    base = git("rev-parse", "main", cwd=repo)
    text = f"```diff\n{diff}```\n" if RENAMED in script else diff
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\nbase: {base}\n---\nIt goes.\n\n{text}")
    told = report(repo / ".patchq", "x")
    assert (told["state"], told["problems"]) == ("applied", [])
    assert git("diff", "main", "work", cwd=repo) == ""


def test_a_delta_is_refused_with_what_to_send(repo: Path) -> None:
    diff = change(repo, "printf end >> x.bin")
    assert "\ndelta " in diff
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\n---\n{diff}", code=1)
    (problem,) = report(repo / ".patchq", "x")["problems"]
    assert problem["code"] == "response.unreadable_edit"
    assert "patchq submit --branch" in problem["hint"]


def test_a_file_that_is_another_by_now_is_not_deleted(repo: Path) -> None:
    diff = change(repo, CHANGES["deleted"])
    git("checkout", "-q", "main", cwd=repo)
    commit_files(repo, {"x.bin": b"\0other"})
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\n---\n{diff}", code=1)
    told = report(repo / ".patchq", "x")
    assert [problem["code"] for problem in told["problems"]] == ["conflict.base"]


OTHERS = {
    "search_replace, delete": "x.bin\n<<<<<<< DELETE\n>>>>>>> DELETE\n",
    "search_replace, rename": "x.bin\n<<<<<<< RENAME\nz.bin\n>>>>>>> RENAME\n",
    "v4a, delete": "*** Begin Patch\n*** Delete File: x.bin\n*** End Patch\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_forms_delete_and_rename_binary_files(repo: Path, text: str) -> None:
    base = git("rev-parse", "main", cwd=repo)
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\nbase: {base}\n---\n{text}")
    names = git("ls-tree", "--name-only", "main", cwd=repo).split()
    assert ("x.bin" in names, "z.bin" in names) == (False, "RENAME" in text)
    if "RENAME" in text:
        assert git("rev-parse", "main:z.bin", cwd=repo) == git("rev-parse", "work:x.bin", cwd=repo)


NO_ID, BROKEN = "0" * 40, "response.unreadable_edit"
FOUR_BYTES = "literal 4\nLc${M>DbEK00=)rS\n"
NO_BYTES = "literal 0\nHcmV?d00001\n"
DAMAGE: dict[str, tuple[tuple[str, str], str]] = {
    "another file's id": (("index ", "another"), "match.none"),
    "bytes are left": ((NO_BYTES, FOUR_BYTES), BROKEN),
    "an abbreviated id": ((f"..{NO_ID}", "..0000000"), BROKEN),
    "no bytes": (("HcmV?d00001\n", ""), BROKEN),
    "a size that is wrong": (("literal 0", "literal 1"), BROKEN),
    "something is made of it": ((NO_ID, "1" * 40), BROKEN),
}


@pytest.mark.parametrize(("damage", "code"), DAMAGE.values(), ids=DAMAGE)
def test_what_contradicts_itself_is_refused(repo: Path, damage: tuple[str, str], code: str) -> None:
    old, base = (git("rev-parse", name, cwd=repo) for name in ("main:y.bin", "main"))
    text = f"diff --git a/y.bin b/y.bin\ndeleted file mode 100644\nindex {old}..{NO_ID}\n"
    text += f"GIT binary patch\n{NO_BYTES}\n{FOUR_BYTES}\n"
    wrong = text.replace(*damage)
    if damage[0] == "index ":
        wrong = text.replace(old, "1234567890" + old[10:])
    assert wrong != text
    head = f"---\nid: x\nbase: {base}\n---\n"
    patchq("apply", "-", cwd=repo, stdin=head + wrong, code=1)
    told = report(repo / ".patchq", "x")
    assert told["problems"][0]["code"] == code
    patchq("apply", "-", cwd=repo, stdin=head + text)
    assert "y.bin" not in git("ls-tree", "--name-only", "main", cwd=repo).split()


def test_lines_of_a_file_that_is_told_by_its_bytes_are_not_lost(repo: Path) -> None:
    body = "literal 4\nLc$~}6OXUIp1Kt5m\n\n"
    made = f"diff --git a/n.txt b/n.txt\nnew file mode 100644\nindex {'0' * 40}..{ONE}\n"
    more = "n.txt\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n"
    diff = f"```diff\n{made}GIT binary patch\n{body}```\n"
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\n---\n{diff}\n{more}", code=1)
    assert report(repo / ".patchq", "x")["problems"][0]["code"] == "conflict.overlap"
