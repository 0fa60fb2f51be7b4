"""What a batch leaves in git and in its report, whichever way it landed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.report.schema import Report
from tests.helpers.command import block, give, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
RESPONSE = "---\nagent: coder\nmodel: some-model-1\n---\nThis makes two a number.\n\n" + "\n".join(
    (
        block("a.txt", "two\n", "2\nand more\n"),
        block("b.txt", "b\n", ""),
        block("c.txt", "", "c\n"),
    )
)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    patchq("init", cwd=repo)
    return repo


def land(repo: Path, way: str) -> dict[str, Any]:
    """Bring the response to the target, directly or by review; its report."""
    write_config(repo, f"version: 1\nmode: {'auto' if way == 'auto' else 'review'}\n")
    give(repo, "x", RESPONSE)
    if way == "rebuilt":
        commit_files(repo, {"later.txt": "later\n"})
    if way != "auto":
        patchq("accept", "x", cwd=repo)
    return report(repo / ".patchq", "x")


@pytest.mark.parametrize("way", ["auto", "accepted", "rebuilt"])
def test_what_is_in_git(repo: Path, way: str) -> None:
    base = git("rev-parse", "main", cwd=repo)
    told = land(repo, way)
    message = git("log", "-1", "--format=%an <%ae> %cn%n%B", "main", cwd=repo)
    assert message.startswith(
        "Ada Tester <ada@example.org> Ada Tester\n"
        "Edit a.txt, b.txt (+1)\n\nThis makes two a number.\n"
    )
    raw = git("diff", "--raw", "--no-abbrev", "main~", "main", cwd=repo).splitlines()
    rows = sorted(line.split() for line in raw)
    sides = sorted((row[5], row[2], f"{row[1]} {row[3]}") for row in rows)
    blobs = "".join("\0".join(side) + "\n" for side in sides)
    blobs = blobs.replace("000000 " + "0" * 40, "None").replace("0" * 40, "None")
    assert git("log", "-1", "--format=%(trailers:only,unfold)", "main", cwd=repo).split("\n") == [
        "Patchq-Batch: x",
        f"Patchq-Source: sha256:{hashlib.sha256(RESPONSE.encode()).hexdigest()}",
        f"Patchq-Base: {base}",
        f"Patchq-Edits: sha256:{hashlib.sha256(blobs.encode()).hexdigest()}",
        "Assisted-by: coder:some-model-1",
        "",
    ]
    refs = git("for-each-ref", "--format=%(refname)", cwd=repo).split()
    assert refs == ["refs/heads/main", *(["refs/notes/patchq"] if way != "auto" else [])]
    line = git("reflog", "-1", "--format=%H %gs", "main", cwd=repo)
    assert line == f"{told['commit']} patchq: x: Edit a.txt, b.txt (+1)"
    assert git("reflog", "-1", "--format=%H %gs", "HEAD", cwd=repo) == line
    assert told["tree"] == git("rev-parse", "main^{tree}", cwd=repo)
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_refusal_leaves_nothing(repo: Path) -> None:
    before = git("for-each-ref", cwd=repo), sorted((repo / ".git/objects").rglob("*"))
    told = give(repo, "x", RESPONSE + block("a.txt", "nowhere\n", "x\n"), code=1)
    assert (git("for-each-ref", cwd=repo), sorted((repo / ".git/objects").rglob("*"))) == before
    assert list(told) == list(Report.__struct_fields__)
    assert (told["commit"], told["tree"], told["branch"]) == (None, None, None)
    assert [e["state"] for e in told["edits"]] == ["ready", "ready", "ready", "failed"]
    assert told["retry"]["prompt"]
    assert not [*(repo / ".git").rglob("*.lock")]
