"""The benches themselves: the judge catches a command that lies, and both run to their end."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.helpers.benches import bench

BEFORE = "def one():\n    return 1\n"
AFTER = "def one():\n    return 2\n"
RESPONSE = "pkg/a.py\n<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE\n"

STAND_IN = '''
"""Plays the command for one fixed response; sys.argv[1] says in which way it goes wrong."""
import hashlib, json, subprocess, sys
from pathlib import Path

how, git = sys.argv[1], lambda *words, data=None: subprocess.run(
    ["git", *words], input=data, capture_output=True, check=True, text=True).stdout.strip()
queue = Path(".patchq")
response = next((queue / "inbox").glob("*.md"))
body, name = response.read_bytes(), response.stem
state, place = ("rejected", "rejected") if "refuse" in how else ("proposed", "done")
if how == "crash":
    raise SystemExit("boom")
if how != "refuse":
    text = Path("pkg/a.py").read_text().replace("return 1", "return 2")
    if how == "other bytes":
        text = text.rstrip()
    blob = git("hash-object", "-w", "--stdin", data=text)
    more = f"100644 blob {blob}\\textra\\n" if how == "other path" else ""
    mode = "100755" if how == "mode" else "100644"
    pkg = git("mktree", data=f"{mode} blob {blob}\\ta.py\\n")
    tree = git("mktree", data=f"040000 tree {pkg}\\tpkg\\n" + more)
    parent = [] if how == "no parent" else ["-p", "main"]
    commit = git("commit-tree", tree, *parent, "-m", "x")
    git("update-ref", "refs/heads/main" if how == "main" else f"refs/heads/patchq/{name}", commit)
if how == "work tree":
    Path("pkg/a.py").write_text(text)
for where in {place} if how != "two verdicts" else {"done", "rejected"}:
    (queue / where).mkdir()
    report = {"id": name, "state": state, "problems": [], "source": {
        "name": response.name, "sha256": hashlib.sha256(body).hexdigest()}}
    (queue / where / f"{name}.md").write_bytes(body)
    (queue / where / f"{name}.report.md").write_text("told")
    (queue / where / f"{name}.report.json").write_text(
        "{" if how == "report" else json.dumps(report))
response.unlink()
sys.exit(1 if state == "rejected" and how != "exit" else 0)
'''


def write_cases(path: Path, *expects: str) -> Path:
    lines: list[dict[str, object]] = [
        {"blob": "b", "text": BEFORE},
        {"blob": "a", "text": AFTER},
    ]
    for number, expect in enumerate(expects):
        lines.append(
            {
                "id": f"case+{number}",
                "source": "here",
                "format": "search_replace",
                "slip": "none",
                "response": RESPONSE if expect != "refuse" else RESPONSE.replace("1", "7"),
                "before": {"pkg/a.py": "b"},
                "after": {"pkg/a.py": "b" if expect == "refuse" else "a"},
                "expect": expect,
            }
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def judged(tmp_path: Path, how: str, expect: str = "exact") -> tuple[int, dict[str, str]]:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    command = shlex.join([sys.executable, str(tmp_path / "stand_in.py"), how])
    cases = write_cases(tmp_path / "cases.jsonl", expect)
    done = bench("corpus", str(cases), "--command", command, "--json", "out.json", cwd=tmp_path)
    return done.returncode, json.loads((tmp_path / "out.json").read_text())[0]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("other bytes", "other content: pkg/a.py"), ("other path", "other content: extra"),
        ("mode", "other content: pkg/a.py"), ("no parent", "is not one commit on main"),
        ("main", "main was moved"), ("work tree", "the work tree was touched"),
        ("refuse, but leave a ref", "refused, but left refs/heads/patchq/case-0"),
        ("two verdicts", "2 verdicts"), ("crash", "0 verdicts (exit 1); it said: boom"),
        ("report", "a report is not JSON"),
    ],
)  # fmt: skip
def test_the_corpus_judge_catches(tmp_path: Path, how: str, why: str) -> None:
    code, result = judged(tmp_path, how)
    assert (code, result["outcome"]) == (1, "wrong")
    assert why in result["why"]


def test_corpus_runs_the_command(tmp_path: Path) -> None:
    cases = write_cases(tmp_path / "cases.jsonl", "exact", "refuse")
    for words in ([], ["--bare"]):
        done = bench("corpus", str(cases), *words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 cases" in done.stdout


TINY = ["--sizes", "200", "--rounds", "1", "--responses", "11", "--drops", "2"]


@pytest.mark.parametrize(
    ("part", "figures"),
    [
        ("rates", {"patchq", "floor", "floor-none", "am", "checked-out", "start-up", "rss"}),
        ("latency", {"auto p50", "auto p95", "review p50", "review p95"}),
        ("waiting", {"few", "few net", "many", "many net"}),
    ],
)
def test_speed_runs_the_command(tmp_path: Path, part: str, figures: set[str]) -> None:
    words = [*TINY, "--only", part, "--waiting", "5,20", "--work", str(tmp_path)]
    done = bench("speed", *words, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads((tmp_path / "out.json").read_text())
    assert figures <= {figure["name"] for figure in measured}
    assert {figure["files"] for figure in measured} == {200}
    assert "goals (median; each round)\n" in done.stdout


def test_daemon_bench_runs_the_command(tmp_path: Path) -> None:
    words = ["--only", "overflow", "--responses", "60", "--work", str(tmp_path)]
    done = bench("speed.daemon", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 of 60  all, once      met" in done.stdout
