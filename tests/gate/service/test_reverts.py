"""What was taken back is counted for who had sent it, once, whoever counts and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import make_repo, write_config


def rows(repo: Path, by: str) -> dict[str | None, Any]:
    told = patchq("--json", "stats", "--by", by, cwd=repo).json()["rows"]
    return {row["name"]: row["reverts"] for row in told}


def test_reverts_are_counted_by_agent_model_and_format(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n"})
    patchq("init", cwd=repo)
    write_config(repo, "version: 1\nmode: auto\n")
    header = "---\nagent: {}\nmodel: m-1\n---\n"
    text = block("a.txt", "one\n", "1\n") + block("b.txt", "b\n", "B\n")
    drop(repo / ".patchq", {"x.md": header.format("ann") + text})
    drop(repo / ".patchq", {"y.md": header.format("ben") + block("c.txt", "c\n", "C\n")})
    patchq("run", cwd=repo)
    assert rows(repo, "agent") == {"ann": {}, "ben": {}}
    patchq("revert", "x", cwd=repo)
    wanted = {"batches": 1, "edits": 2}
    for again in range(3):
        assert rows(repo, "agent") == {"ann": wanted, "ben": {}, None: {}}, again
        assert rows(repo, "model")["m-1"] == wanted
        assert rows(repo, "format")["search_replace"] == {"edits": 2}
        assert "reverts     edits 2, changes 1" in patchq("stats", "--by", "agent", cwd=repo).out
        (repo / ".patchq/store.db").unlink()  # it is made again from the reports
    patchq("revert", "y", cwd=repo)
    assert rows(repo, "agent")["ben"] == {"batches": 1, "edits": 1}
