"""Every verb tried wrongly: one line that says what to do, exit code 2, and nothing is written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from patchq.cli.command import VERBS
from tests.cli.conftest import everything
from tests.helpers.command import Done, block, patchq, work
from tests.helpers.gitrepo import make_repo

RIGHT = {
    "setup": "--list",
    "init": "", "watch": "", "stop": "", "run": "", "status": "", "log": "", "stats": "", "mcp": "",
    "doctor": "", "fsck": "", "backup": "copy.db",
    "submit": "good.md", "check": "good.md", "apply": "good.md",
    "events": "",
    "show": "good", "accept": "good", "discard": "good", "revert": "good", "retry": "good",
    "send-back": "good -m x",
    "wait": "good",
    "prompt": "a.txt --task x", "ask": "a.txt --task x", "anchors": "a.txt", "formats": "",
    "instructions": "", "train": "", "review": "--no-open", "hooks": "list", "config": "check",
    "completion": "bash", "cluster": "status", "worker": "",
    "service": "install", "forge": "check",
}  # fmt: skip
"""Each verb with words that it takes."""

TOO_MUCH = {"prompt": "--line much", "ask": "--line much"}
"""For verbs that take any number of files."""

SLIPS = {
    "statsu": "did you mean `status` or `stats`?",
    "stauts": "did you mean `status` or `stats`?",
    "sbumit x": "did you mean `submit`?",
    "submitt x": "did you mean `submit`?",
    "shwo good": "did you mean `show`?",
    "xyzzyqw": "`patchq --help` lists them",
    "help nothing": "`patchq --help` lists them",
    "--nonsense": "see `patchq -h`",
    "--confg x status": "did you mean `--config`?",
    "status --jsn": "did you mean `--json`?",
    "status --state prposed": "did you mean `proposed`?",
    "status --by hour": "one of age, size, agent, risk",
    "log --since yesterdya": "got 'yesterdya'",
    "log --since 3dd": "such as 2h, yesterday, 2 days ago or 2026-01-31",
    "log --since tomorrow": "got 'tomorrow'",
    "log -n 0": "expected a whole number from 1",
    "show": "name a change: `patchq show ID`; `patchq status` lists them",
    "wait": "name a change: `patchq wait ID`; `patchq status` lists them",
    "accept": "name a change: `patchq accept ID`; or several, or --all-from AGENT",
    "discard": "name a change: `patchq discard ID`; or several, or --all-from AGENT",
    "show goood": "did you mean `good`?",
    "show godo": "did you mean `good`?",
    "accept goood": "did you mean `good`?",
    "accept go": "did you mean `good`?",
    "discard patchq/goood": "did you mean `good`?",
    "retry nobody": "`patchq log` lists them",
    "accept --all-from codx": "did you mean `codex`?",
    "accept good --without 7": "its edits: 1",
    "wait good --for landed": "one of applied, proposed",
    "check": "name a file: `patchq check FILE`",
    "apply": "name a file: `patchq apply FILE`",
    "submit": "name a file, - for standard input, or --branch",
    "submit empty.md": "the response is empty",
    "submit nowhere.md": "name a file, or - for standard input",
    "submit -- --json": "cannot read --json",
    "submit --branch nothing": "see `git branch`",
    "hooks": "name one of list, install, uninstall",
    "hooks instal": "did you mean `install`?",
    "config": "name one of check, sample, schema: `patchq config check`",
    "config chek": "did you mean `check`?",
    "completion": "name a shell: `patchq completion SHELL`",
    "completion bsh": "did you mean `bash` or `zsh`?",
    "formats search_replce": "did you mean `search_replace`?",
    "setup cluade": "did you mean `claude`?",
    "prompt a.txt": "describe the task: `patchq prompt FILE --task TEXT`",
    "fsck --repiar": "did you mean `--repair`?",
}
"""Mistakes, each with the cure that its answer names."""


@pytest.fixture
def repo(repo: Path) -> Path:
    """A repository with one proposal; nothing here changes it."""
    work(repo, good="---\nagent: codex\n---\n" + block("a.txt", "two\n", "2\n"))
    (repo / "good.md").write_text(block("a.txt", "one\n", "1\n"))
    (repo / "empty.md").touch()
    return repo


def test_one_line_and_nothing_written(repo: Path) -> None:
    assert RIGHT.keys() == VERBS.keys()
    before = everything(repo.parent)
    for verb, right in RIGHT.items():
        for words in (
            f"{verb[:-1]}_ {right}",
            f"{verb} {right} --nonsense",
            f"{verb} {right} {TOO_MUCH.get(verb, 'one too many')}",
            f"-C nowhere {verb} {right}",
        ):
            done = patchq("--json", *words.split(), cwd=repo, code=2)
            error = json.loads(one_line(done))["error"]
            assert all(error[key] for key in ("code", "message", "hint")), words
    assert everything(repo.parent) == before


def one_line(done: Done) -> str:
    assert done.out == ""
    line, end, more = done.err.partition("\n")
    assert (end, more) == ("\n", ""), done.err
    return line


def test_a_slip_is_answered_by_its_cure_in_one_sentence(repo: Path) -> None:
    for words, cure in SLIPS.items():
        told = one_line(patchq(*words.split(), cwd=repo, code=2))
        assert cure in told, words
        assert "usage:" not in told, words


def test_a_filter_that_matches_nothing_tells_the_nearest_names(repo: Path) -> None:
    for words, near in (
        ("status --agent codx", "--agent codex"),
        ("log --agent co", "--agent codex"),
        ("log --path a.tx", "--path a.txt"),
    ):
        done = patchq(*words.split(), cwd=repo)
        assert done.err.startswith("patchq: nothing matches --")
        assert f"; did you mean `{near}`?" in done.err


def test_dates_are_those_of_git(repo: Path) -> None:
    for when in ("2h", "yesterday", "2 days ago", "2026-01-31", "last friday", "2026-01-31 12:00"):
        assert "good" in patchq("log", "--since", when, cwd=repo).out, when


def test_flags_stand_before_the_verb_or_behind(repo: Path) -> None:
    for words in (
        "-C repo --json status",
        "-C repo status --json -C .",
        "status -Crepo --config=.git/patchq.yaml --json",
    ):
        (one,) = patchq(*words.split(), cwd=repo.parent).json()["waiting"]
        assert one["id"] == "good"
    assert "not allowed with" in patchq("-q", "status", "-v", cwd=repo, code=2).err


def test_alone_it_is_short_and_help_lists_every_verb(repo: Path, tmp_path: Path) -> None:
    told = patchq(cwd=repo).out
    assert len(told.splitlines()) <= 14
    assert told.startswith("main, review mode; no daemon runs; inbox empty; 1 for review\n")
    assert "next: `patchq status`, then `patchq show ID`" in told
    every_day = ("watch", "status", "show", "accept", "send-back", "review")
    assert all(f"\n  {verb} " in told for verb in every_day)
    listed = re.findall(r"^    ([a-z-]+) ", patchq("--help", cwd=repo).out, re.M)
    assert tuple(listed[:6]) == every_day
    assert {*listed} == {*VERBS}
    assert patchq("help", cwd=repo).out == patchq("-h", cwd=repo).out
    assert patchq("help", "log", cwd=repo).out == patchq("log", "--help", cwd=repo).out
    assert "git init" in patchq("--json", cwd=tmp_path).json()["next"]
    new = make_repo(tmp_path / "new", {"a": "a\n"})
    assert "`patchq setup`" in patchq("--json", cwd=new).json()["next"]
    assert not (new / ".patchq").exists()
