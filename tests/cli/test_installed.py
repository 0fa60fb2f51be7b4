"""What stands beside the command: completion, the man page, `git patchq`, the docs, the schema."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers import manpage
from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import git, operators_file
from tests.helpers.pages import ROOT


def test_bash_completes_verbs_flags_choices_and_ids(repo: Path) -> None:
    drop(repo / ".patchq", {"fix-1.md": block("new.txt", "", "b\n")})
    patchq("run", cwd=repo)
    script = patchq("completion", "bash", cwd=repo).out
    asked = {
        "patchq acc": "accept",
        "patchq accept ": "fix-1",
        "patchq log --st": "--state",
        "patchq log --by s": "size",
        "patchq config sch": "schema",
    }
    script += '\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_patchq; echo "${COMPREPLY[*]}"'
    for words, wanted in asked.items():
        command = ["bash", "-c", script, "bash", *words.split(" ")]
        found = subprocess.check_output(command, cwd=repo, text=True, timeout=60)
        assert wanted in found.split(), words


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each Python's argparse words it anew")
def test_the_man_page_is_what_the_parser_says() -> None:
    said = manpage.PATH.read_text(encoding="utf-8")
    assert said == manpage.made(), "write it anew: python -m tests.helpers.manpage"


def test_git_finds_it(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    scripts = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-scripts"]
    assert scripts == {"contrib/patchq": "patchq", "contrib/git-patchq": "git-patchq"}
    programs = tmp_path / "bin"
    programs.mkdir()
    for path, name in scripts.items():
        assert os.access(ROOT / path, os.X_OK)
        (programs / name).write_text(f"#!{sys.executable}\n" + (ROOT / path).read_text())
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (repo / "sub").mkdir()
    assert git("patchq", "status", cwd=repo / "sub") == patchq("status", cwd=repo).out.rstrip("\n")


def test_editors_find_the_schema_that_the_sample_names(repo: Path) -> None:
    first, _, _ = operators_file(repo).read_text().partition("\n")
    place = re.fullmatch(r"# yaml-language-server: \$schema=(.*)", first)
    assert place
    schema = json.loads((repo / place[1]).read_text())
    assert {"mode", "target"} <= schema["$defs"]["Config"]["properties"].keys()
    assert schema == patchq("config", "schema", cwd=repo).json()
    (repo / place[1]).write_text("{}")
    patchq("init", cwd=repo)
    assert json.loads((repo / place[1]).read_text()) == schema
