"""A program that uses the library or the gate passes `mypy --strict`, and a wrong one does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command import patchq
from tests.helpers.gitrepo import make_repo
from tests.helpers.pages import ROOT

LIBRARY = """
import patchq

result: patchq.Result = patchq.apply("x", {"a.py": b""}, patchq.Rules(levels=("exact",)))
contents: dict[str, bytes | None] = result.files
codes: list[str] = [problem.code for problem in result.errors]
paths: list[str] = [edit.path for edit in patchq.parse("x").edits]
patchq.nothing
patchq.apply(1, {})
"""
(GATE,) = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs/feeding.md").read_text(encoding="utf-8"), re.M | re.S
)


def typed(program: str, directory: Path) -> list[str]:
    """The codes of the type checker's errors."""
    (directory / "program.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--no-error-summary", "--config-file=", "--cache-dir", str(directory / "cache")]
    run = subprocess.run(
        [*command, "program.py"],
        cwd=directory,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert not run.stderr
    return [line.rpartition("[")[2] for line in run.stdout.splitlines() if ": error:" in line]


def test_what_a_program_uses_is_typed(tmp_path: Path) -> None:
    assert (ROOT / "patchq/py.typed").is_file()
    wrong = "gate.submit(edits, agnet='bob')\nreport.nothing\n"
    errors = typed(f"{LIBRARY}\n{GATE}\n{wrong}", tmp_path)
    assert errors == ["attr-defined]", "arg-type]", "call-arg]", "attr-defined]"]


def test_a_program_hands_a_change_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = make_repo(tmp_path / "repo", {"hello.py": 'print("hello")\n'})
    monkeypatch.chdir(repo)
    subprocess.run([sys.executable, "-m", "patchq", "watch", "--detach"], check=True, timeout=120)
    try:
        exec(compile(GATE, "docs/feeding.md", "exec"), {})
    finally:
        patchq("stop", cwd=repo)
