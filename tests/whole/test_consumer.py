"""A program that uses the library passes `mypy --strict`, and a wrong one does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.pages import ROOT

PROGRAM = """
import patchq

result: patchq.Result = patchq.apply("x", {"a.py": b""}, patchq.Rules(levels=("exact",)))
contents: dict[str, bytes | None] = result.files
codes: list[str] = [problem.code for problem in result.errors]
paths: list[str] = [edit.path for edit in patchq.parse("x").edits]
patchq.nothing
patchq.apply(1, {})
"""


def test_the_library_is_typed(tmp_path: Path) -> None:
    assert (ROOT / "patchq/py.typed").is_file()
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--no-error-summary", "--config-file=", "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run(
        [*command, "program.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line.rpartition("[")[2] for line in run.stdout.splitlines() if ": error:" in line]
    assert errors == ["attr-defined]", "arg-type]"], run.stdout + run.stderr
