"""`patchq revert`: a batch is taken back by a batch of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.review.beside import NUMBERED, TEXT, tree
from tests.helpers.command import block, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, tip

FILES = {
    "a.txt": TEXT,
    "old.txt": TEXT,
    "end.txt": "one\ntwo",
    "script.sh": "#!/bin/sh\ntrue\n",
    "crlf.txt": "one\r\ntwo\r\nthree\r\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / "script.sh").chmod(0o755)
    commit_files(repo, {".patchq.yaml": "version: 1\nmode: auto\npaths: {review: ['!*']}\n"})
    patchq("init", cwd=repo)
    return repo


def land(repo: Path, id: str, text: str) -> str:
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: {id}\nmessage: Change by {id}\n---\n{text}")
    assert report(repo / ".patchq", id)["state"] == "applied"
    return tip(repo)


DIFF_RENAME = """\
diff --git a/old.txt b/new/name.txt
rename from old.txt
rename to new/name.txt
--- a/old.txt
+++ b/new/name.txt
@@ -2,3 +2,3 @@
 line 2
-line 3
+LINE 3
 line 4
"""
DELETE = "--- a/a.txt\n+++ /dev/null\n@@ -1,40 +0,0 @@\n"
BATCHES = {
    "an edit": block("a.txt", "line 5\n", "LINE 5\n"),
    "a new file": block("deep/er/n.txt", "", "new\n"),
    "a rename with an edit": DIFF_RENAME,
    "a deleted file": DELETE + "".join(f"-{line}" for line in NUMBERED),
    "a newline at the end": "--- a/end.txt\n+++ b/end.txt\n@@ -1,2 +1,2 @@\n one\n-two\n"
    "\\ No newline at end of file\n+two\n",
    "an executable file": block("script.sh", "true\n", "false\n"),
    "line ends of Windows": block("crlf.txt", "two\n", "2\nand\n"),
}


@pytest.mark.parametrize("text", BATCHES.values(), ids=BATCHES)
def test_what_a_batch_did_is_taken_back(repo: Path, text: str) -> None:
    before, commit = tree(repo, "main"), land(repo, "x", text)
    done = patchq("revert", "x", cwd=repo)
    assert tree(repo, "main") == before
    assert tip(repo, "main^") == commit
    assert done.out.splitlines()[1].split()[:2] == ["reverted", "x"]
    message = git("log", "-1", "--format=%B", cwd=repo)
    assert message.startswith('Revert "Change by x"\n')
    assert f"This reverts commit {commit}.\nIt landed as change x." in message
    assert "Patchq-Batch: revert-x" in message
    told, made = (report(repo / ".patchq", id) for id in ("x", "revert-x"))
    assert (told["state"], told["duplicate_of"], told["commit"]) == ("reverted", "revert-x", commit)
    assert (made["state"], made["target"], made["commit"]) == ("applied", "main", tip(repo))
    assert made["base"] == {"commit": commit, "how": "declared"}
    assert git("status", "--porcelain", cwd=repo) == ""
    assert "reverted by `revert-x`" in (repo / ".patchq/done/x.report.md").read_text()


def test_what_was_changed_since_is_refused(repo: Path) -> None:
    land(repo, "x", block("a.txt", "line 10\n", "LINE 10\n"))
    later = land(repo, "y", block("a.txt", "LINE 10\n", "Line Ten\n"))
    done = patchq("revert", "x", cwd=repo, code=1)
    assert done.err.startswith("patchq: conflict.base: ")
    assert later[:12] in done.err
    assert tip(repo) == later
    assert report(repo / ".patchq", "x")["state"] == "applied"
    assert not [*(repo / ".patchq").glob("*/revert-x*")]


def test_a_revert_is_reverted_once(repo: Path) -> None:
    land(repo, "x", BATCHES["an edit"])
    after = tree(repo, "main")
    patchq("revert", "x", cwd=repo)
    now = tip(repo)
    done = patchq("revert", "x", cwd=repo, code=2)
    assert "x has not landed: it is reverted" in done.err
    assert tip(repo) == now
    patchq("revert", "revert-x", cwd=repo)
    assert tree(repo, "main") == after
    assert git("log", "-1", "--format=%s", cwd=repo) == 'Revert "Revert "Change by x""'
    assert report(repo / ".patchq", "revert-x")["duplicate_of"] == "revert-revert-x"


BY_HAND = {"binary": b"\0\1\2", "latin-1": b"caf\xe9\n", "other line ends": b"one\r\ntwo\n"}


@pytest.mark.parametrize("data", BY_HAND.values(), ids=BY_HAND)
def test_what_no_diff_of_text_tells_comes_back(repo: Path, data: bytes) -> None:
    commit_files(repo, {".patchq.yaml": "version: 1\nconfirm: true\n"})
    before = tree(repo, "main")
    patchq("apply", "-", cwd=repo, stdin="---\nid: x\n---\n" + BATCHES["an edit"])
    git("checkout", "-q", "patchq/x", cwd=repo)
    commit_files(repo, {"a.txt": data})
    git("checkout", "-q", "main", cwd=repo)
    patchq("accept", "x", cwd=repo)
    assert tree(repo, "main") != before
    patchq("revert", "x", cwd=repo)
    assert tree(repo, "main") == before


def test_it_works_when_the_queue_is_lost(repo: Path) -> None:
    before = tree(repo, "main")
    land(repo, "x", BATCHES["an edit"])
    git("clean", "-qfdx", ".patchq", cwd=repo)
    patchq("revert", "x", cwd=repo)
    assert tree(repo, "main") == before
    assert patchq("--json", "status", "x", cwd=repo).json()["state"] == "reverted"
