"""The branch that a worker has checked out brings no rules."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.command import block, drop, seen
from tests.helpers.gitrepo import commit_files, git, operators_file
from tests.helpers.machines import Machines

FILES = {"a.txt": "one\ntwo\nthree\n"}
RULES = """version: 1
target: main
mode: review
queue:
  settle_seconds: 0.1
cluster:
  takeover_seconds: 10
"""


def test_a_branch_that_a_worker_has_checked_out_brings_no_rules(
    tmp_path: Path, database: str
) -> None:
    marker = tmp_path / "marker"
    machines = Machines(tmp_path, database, {**FILES, ".patchq.yaml": RULES}, "")
    try:
        for name in ("feeder", "w1"):
            place = machines.clone(name)
            operators_file(place).unlink()
            hook = f"hooks: [{{id: evil, stage: pre-commit, run: 'touch {marker}'}}]\n"
            git("checkout", "-q", "-b", "agent/x", cwd=place)
            commit_files(place, {".patchq.yaml": RULES.replace("review", "auto") + hook})
        machines.start("feeder", "watch")
        machines.start("w1", "worker", "--name", "w1")
        queue = machines.root / "feeder" / ".patchq"
        drop(queue, {"x.md": block("a.txt", "one\n", "1\n")})
        machines.soon(lambda: seen(queue, "x"))
        told = seen(queue, "x") or {}
        assert (told["state"], told["mode"], told["hooks"]) == ("proposed", "review", [])
        assert told["rules"]["from"] == "home branch"
        assert not marker.exists()
    finally:
        machines.close()
