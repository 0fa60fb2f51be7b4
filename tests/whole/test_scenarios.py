"""What becomes of a response, told by directories: `before`, `response.md`, and what follows.

`after` is the branch's tree once the batch landed.  Where it is missing, `refused` holds a line
for each problem, `CODE LINE`, and `duplicate` says that nothing was left to do.  `second.md` is a
further response, sent once the first has landed; what is expected is then expected of it.
`config.yaml` is the configuration, `setup.sh` runs in the repository before.  `proposed` holds the
warnings for which auto mode asks a person.

Those in `ELSEWHERE` land in a bare repository and on a remote as well.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.report.schema import Report
from tests.helpers.command import drop, patchq
from tests.helpers.gitrepo import git, write_config

ELSEWHERE = {
    "already-landed", "base-moved-beside", "create", "edit-and-delete", "follow-up", "not-there",
    "path-to-review", "rename-and-edit",
}  # fmt: skip
SCENARIOS = Path(__file__).parents[1] / "scenarios"
NAMES = sorted(place.name for place in SCENARIOS.iterdir() if place.is_dir())


class Place:
    """A scenario's repository, with its queue."""

    def __init__(self, repo: Path, config: str) -> None:
        self.repo = repo
        self.shared = repo
        """The repository in which the verdicts are true."""
        self.queue = repo / ".patchq"
        write_config(repo, config)
        patchq("init", cwd=repo)

    def give(self, response: Path) -> dict[str, Any]:
        """Send a response; its report."""
        drop(self.queue, {response.name: response.read_bytes()})
        code = patchq("run", cwd=self.repo, code=None).code
        reports = map(json.loads, (p.read_bytes() for p in self.queue.glob("*/*.report.json")))
        (told,) = (told for told in reports if told["source"]["name"] == response.name)
        assert code == (told["state"] == "rejected"), "the exit code says what the report says"
        assert list(told) == list(Report.__struct_fields__)
        return dict(told)

    def refs(self) -> str:
        return git("for-each-ref", cwd=self.shared)

    def tree(self, commit: str) -> dict[str, tuple[str, str]]:
        """Mode and blob by path."""
        listed = git("ls-tree", "-r", "-z", commit, cwd=self.shared).split("\0")[:-1]
        parts = (line.split("\t") for line in listed)
        return {path: (info.split(" ")[0], info.split(" ")[2]) for info, path in parts}


def tree_of(root: Path) -> dict[str, tuple[str, str]]:
    """The tree that git would make of the files."""
    tree = {}
    for path in root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            mode = "100755" if path.stat().st_mode & 0o100 else "100644"
            blob = hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False)
            tree[str(path.relative_to(root))] = mode, blob.hexdigest()
    return tree


def repository(given: Path, tmp_path: Path) -> Path:
    """As it is before."""
    repo = tmp_path / "repo"
    shutil.copytree(given / "before", repo)
    git("init", "-q", cwd=repo)
    git("add", "--force", ".", cwd=repo)
    git("commit", "-q", "-m", "Start", cwd=repo)
    if (given / "setup.sh").exists():
        subprocess.run(["sh", "-e", str(given / "setup.sh")], cwd=repo, check=True, timeout=60)
    return repo


def configuration(given: Path, mode: str) -> str:
    own = given / "config.yaml"
    return f"{own.read_text() if own.exists() else 'version: 1'}\nmode: {mode}\n"


def place(given: Path, kind: str, tmp_path: Path) -> Place:
    repo = repository(given, tmp_path)
    config = configuration(given, "review" if kind == "review" else "auto")
    if kind == "remote":
        git("clone", "-q", "--bare", "repo", "hub.git", cwd=tmp_path)
        git("remote", "add", "-f", "origin", "../hub.git", cwd=repo)
        config += "landing: {remote: origin}\n"
    if kind == "bare":
        git("clone", "-q", "--bare", str(repo), "bare.git", cwd=tmp_path)
        repo = tmp_path / "bare.git"
    at = Place(repo, config)
    if kind == "remote":
        at.shared = tmp_path / "hub.git"
    return at


def problems(told: dict[str, Any], severity: str) -> list[tuple[str, int | None]]:
    return [(p["code"], p["line"]) for p in told["problems"] if p["severity"] == severity]


def kinds(scenario: str) -> list[str]:
    """A refusal is the same in every mode."""
    refused = (SCENARIOS / scenario / "refused").exists()
    modes = ["review"] if refused else ["review", "auto"]
    return [*modes, "bare", "remote"] if scenario in ELSEWHERE else modes


@pytest.mark.parametrize(("scenario", "kind"), [(s, k) for s in NAMES for k in kinds(s)])
def test_scenario(scenario: str, kind: str, tmp_path: Path) -> None:
    given = SCENARIOS / scenario
    at = place(given, kind, tmp_path)
    play(given, at, kind)
    if kind != "bare":
        assert git("status", "--porcelain", "--untracked-files=no", cwd=at.repo) == ""
    assert git("fsck", "--strict", "--no-dangling", cwd=at.repo) == ""


def play(given: Path, at: Place, kind: str) -> None:
    """Send what the scenario sends, and expect what it expects."""
    before, told, response = at.refs(), at.give(given / "response.md"), given / "second.md"
    if response.exists():
        if kind == "review":
            patchq("accept", told["id"], cwd=at.repo)
        before, told = at.refs(), at.give(response)
    else:
        response = given / "response.md"
    refused, duplicate, after = given / "refused", given / "duplicate", given / "after"
    if refused.exists():
        lines = (line.split() for line in refused.read_text().splitlines())
        expected = [(code, None if line == "-" else int(line)) for code, line in lines]
        assert (told["state"], problems(told, "error")) == ("rejected", expected)
    elif duplicate.exists():
        assert (told["state"], problems(told, "error")) == ("duplicate", [])
    else:
        asks = given / "proposed"
        warnings = asks.read_text().split() if asks.exists() else []
        proposed = kind == "review" or warnings
        assert told["state"] == ("proposed" if proposed else "applied"), told["problems"]
        assert [code for code, _ in problems(told, "warning")] == warnings
        assert told["branch"] == (f"patchq/{told['id']}" if proposed else None)
        branch = told["branch"] or told["target"]
        assert told["commit"] == git("rev-parse", branch, cwd=at.shared)
        assert told["tree"] == git("rev-parse", f"{branch}^{{tree}}", cwd=at.shared)
        assert at.tree(branch) == tree_of(after)
    if told["state"] in ("rejected", "duplicate"):
        assert at.refs() == before
        assert (told["commit"], told["tree"], told["branch"]) == (None, None, None)
        assert "applied" not in {edit["state"] for edit in told["edits"]}
        assert not after.exists() or at.tree("main") == tree_of(after)
    folder = "rejected" if told["state"] == "rejected" else "done"
    kept = at.queue / folder / f"{told['id']}.md"
    assert kept.read_bytes() == response.read_bytes()
    assert kept.with_name(f"{told['id']}.report.md").exists()
