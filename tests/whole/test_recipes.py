"""The recipes of `docs/recipes.md` work as they stand there, each on a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.gitrepo import make_repo
from tests.helpers.pages import ROOT, names, table

PAGE = ROOT / "docs/recipes.md"
RECIPES = {
    title: text
    for title, _, text in (
        section.partition("\n") for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    )
}
STEP = re.compile(
    r"""^New\ file\ `(?P<new>[^`]+)`: \n\n ```\w+\n (?P<text>.*?) ^```$
      | ^In\ `(?P<file>[^`]+)`,\ (?P<where>behind|before)\ `(?P<line>[^`]+)`: \n\n
        ```\w+\n (?P<more>.*?) ^```$
      | ^In\ `(?P<end>[^`]+)`,\ at\ the\ end: \n\n ```\w+\n (?P<last>.*?) ^```$
      | ^In\ `(?P<changed>[^`]+)`,\ write\ `(?P<now>[^`]+)`\ for\s+`(?P<was>[^`]+)`\.$
      | ^```console\n (?P<console>.*?) ^```$""",
    re.M | re.S | re.X,
)


def test_the_tables_of_codes_are_there() -> None:
    rows = [names(cell) for cell, _ in table(PAGE, "table")]
    missing = [row for row in rows if row[0] not in (ROOT / row[1]).read_text(encoding="utf-8")]
    assert (len(rows), missing) == (8, [])


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project, whose commands are the ones on the PATH, beside a repository."""
    at = tmp_path / "checkout"
    past = shutil.ignore_patterns("__pycache__", "scenarios")
    for name in ("patchq", "hooks", "tests", "bench", "docs"):
        shutil.copytree(ROOT / name, at / name, ignore=past)
    shutil.copy(ROOT / "pyproject.toml", at)
    (tmp_path / "bin").mkdir()
    for name, words in {"python": "", "patchq": "-m patchq", "pytest": "-m pytest"}.items():
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(at))
    make_repo(tmp_path / "project", {"a.py": "x = 1\n"})
    return at


def insert(path: Path, line: str, more: str, *, behind: bool) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    at = lines.index(line) + behind
    lines[at:at] = more.split("\n")[:-1]
    path.write_text("\n".join(lines), encoding="utf-8")


def replace(path: Path, was: str, now: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(was) == 1, f"{path} has {was!r} {text.count(was)} times"
    path.write_text(text.replace(was, now), encoding="utf-8")


def console(checkout: Path, text: str) -> None:
    """Each command says what stands below it; one below which nothing stands has to succeed."""
    for step in text.removeprefix("$ ").split("\n$ "):
        command, _, expected = step.rstrip("\n").partition("\n")
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=checkout, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        said = f"$ {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        if expected:
            assert done.stdout.rstrip("\n") == expected, said
        else:
            assert done.returncode == 0, said


@pytest.mark.parametrize("title", RECIPES)
def test_recipe(title: str, checkout: Path) -> None:
    steps = list(STEP.finditer(RECIPES[title]))
    assert RECIPES[title].count("\n```") == 2 * sum(bool("```" in step[0]) for step in steps)
    assert RECIPES[title].count("\nIn `") + RECIPES[title].count("\nNew file ") == len(steps) - 1
    for step in steps:
        if step["new"]:
            (checkout / step["new"]).write_text(step["text"], encoding="utf-8")
        elif step["file"]:
            behind = step["where"] == "behind"
            insert(checkout / step["file"], step["line"], step["more"], behind=behind)
        elif step["end"]:
            with (checkout / step["end"]).open("a", encoding="utf-8") as file:
                file.write(step["last"])
        elif step["changed"]:
            replace(checkout / step["changed"], step["was"], step["now"])
        else:
            console(checkout, step["console"])


def test_there_are_five_recipes() -> None:
    things = ["format", "shipped hook", "queue engine", "verb", "report code"]
    assert list(RECIPES) == [f"Add a {thing}" for thing in things]
    assert all("```console\n" in text for text in RECIPES.values())
