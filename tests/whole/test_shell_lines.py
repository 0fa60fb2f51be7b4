"""Every shell line of the README and of the pages is run, as it stands there.

A line runs in a repository that all share, on proposals of its own: `VALUES` says what stands for a
name in it, `UNRUN` why a line is not run.  A new line of a page runs by itself.
"""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from patchq.cli.command import VERBS
from tests.helpers import transcript
from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import commit_files, git, make_repo
from tests.helpers.pages import ROOT

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")),
]
RUN_ELSEWHERE = ("docs/architecture.md", "docs/recipes.md")
"""Pages whose lines are run, with what they print, by tests of their own."""
PAGES = [page for page in PAGES if page not in RUN_ELSEWHERE]
NETWORK = "installs from a package index"
SERVES = "serves until it is stopped"
PUSHES = "needs git's hooks and a daemon; tests/gate/hooks/test_push_door.py pushes so"
SYSTEMD = "needs root and systemd"
UNRUN = {
    "python3 -m venv .venv && .venv/bin/pip": NETWORK,
    "python3 -m venv .venv": "is the first half of an installation",
    ".venv/bin/pip install": NETWORK,
    "pip install": NETWORK,
    ".venv/bin/pytest": "runs these tests",
    ".venv/bin/ruff": "is a step of the checks",
    ".venv/bin/mypy": "is a step of the checks",
    ".ci/run": "runs these tests",
    "patchq watch": SERVES,
    "patchq mcp --http": SERVES,
    "patchq review": SERVES,
    "patchq events --json --follow": SERVES,
    "git push . HEAD:refs/for/main": PUSHES,
    "git push origin HEAD:refs/for/main": PUSHES,
    "patchq ask": "needs a model",
    "patchq accept --all-from codex": "needs proposals of that agent",
    "patchq accept --undo": "needs a train that has not left",
    "patchq setup": "asks a person, and changes what the machine's clients read",
    "patchq service": SYSTEMD,
    "systemctl": SYSTEMD,
    "journalctl": SYSTEMD,
    "export PATCHQ_DATABASE": "names a server of one's own",
    "export PATCHQ_FORGE_TOKEN": "holds a token of one's own",
    "patchq forge": "needs a forge; tests/forge has one",
}
"""How lines begin that are not run, and why."""
LANDED = ("revert",)
"""Verbs for batches that landed; others decide on proposals."""
LOGIN = """\
class Login:
    def check(self, name, password):
        user = self.find(name)
        return user.password == password
"""
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^ *```(?:sh|bash|console|shell)\n(.*?)^ *```$", text, re.M | re.S)


def lines(page: str) -> Iterator[str]:
    """The lines of a page; one with a here-document is taken with all that belongs to it."""
    for text in blocks(page):
        if "<<" in text:
            yield text
        else:
            yield from filter(None, map(str.strip, text.splitlines()))


LINES = [(page, line) for page in PAGES for line in lines(page)]


class Place:
    """Where the lines are run."""

    def __init__(self, root: Path) -> None:
        self.repo = make_repo(root / "repo", {"src/login.py": LOGIN})
        git("init", "-q", "--bare", str(root / "remote.git"), cwd=root)
        patchq("init", cwd=self.repo)
        self.linked = root / "linked"
        git("worktree", "add", "-q", "-b", "agent/login", str(self.linked), cwd=self.repo)
        for number in (1, 2):
            commit_files(self.linked, {f"src/new{number}.py": "new = 1\n"}, f"Add {number}")
        self.remote = root / "remote.git"
        self._count = itertools.count()

    def proposal(self, line: str) -> str:
        """A batch of three edits; it waits or has landed, as its verb wants it."""
        id = f"batch-{next(self._count)}"
        paths = (f"src/{id}-{part}.py" for part in "abc")
        drop(self.repo / ".patchq", {f"{id}.md": "".join(block(p, "", "x = 1\n") for p in paths)})
        patchq("run", cwd=self.repo)
        if any(f"patchq {verb} " in line for verb in LANDED):
            patchq("accept", id, cwd=self.repo)
        return id

    def run(self, line: str) -> None:
        for name, value in VALUES.items():
            if re.search(name, line):
                line = re.sub(name, value(self, line), line)
        where = self.linked if "patchq submit --" in line else self.repo
        words = shlex.split(line, comments=True)
        if words[0] == "patchq" and not {"&&", "|", ";", ">"} & {*words}:
            patchq(*words[1:], cwd=where)
        else:
            done = subprocess.run(
                ["sh", "-ec", line],
                cwd=where, capture_output=True, text=True, check=False, timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


VALUES: Mapping[str, Callable[[Place, str], str]] = {
    r"\byour/repository\b": lambda place, line: str(place.repo),
    r"\bREMOTE\b": lambda place, line: str(place.remote),
    r"(?<=--since )ID\b": lambda place, line: "0",
    r"\bID\b": Place.proposal,
    r"\bfix-login\b(?!\.md)": Place.proposal,
}
"""What stands for a name in a line."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("lines")
    config = "[user]\n\tname = Ada\n\temail = a@b.org\n[init]\n\tdefaultBranch = main\n"
    (root / "gitconfig").write_text(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root))
        patch.setenv("GIT_CONFIG_GLOBAL", str(root / "gitconfig"))
        return Place(root)


def why_not(line: str) -> str | None:
    return next((why for begin, why in UNRUN.items() if line.startswith(begin)), None)


@pytest.mark.parametrize("page", dict.fromkeys(page for page, _ in LINES))
def test_lines_of_a_page(
    page: str, place: Place, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "cluster" in page:
        monkeypatch.setenv("PATCHQ_DATABASE", request.getfixturevalue("bare"))
    for line in lines(page):
        if why_not(line) is None:
            place.run(line)
    patchq("run", cwd=place.repo)  # what the lines dropped is good
    assert git("status", "--porcelain", "-uno", cwd=place.repo) == ""


@pytest.mark.parametrize("page", transcript.PAGES)
def test_page_shows_what_its_commands_print(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert transcript.made(page) == text, "run: python -m tests.helpers.transcript"


def test_what_is_not_run_is_there() -> None:
    assert len(LINES) > 40
    unused = [begin for begin in UNRUN if not any(line.startswith(begin) for _, line in LINES)]
    assert unused == []


def test_commands_between_words_have_verbs_and_flags_that_there_are() -> None:
    wrong = []
    for page in PAGES:
        for command in re.findall(r"`(patchq [^`]+)`", (ROOT / page).read_text(encoding="utf-8")):
            words = command.split()[1:]
            known = any(word in VERBS for word in words) or not words[0][0].islower()
            verb = re.findall(r"^patchq(?: -\S+)*((?: [^- ]\S*)*)", command)[0].split()
            if not (known and {*FLAG.findall(command)} <= flags(*verb) | COMMON):
                wrong.append((page, command))
    assert wrong == []


COMMON = {"--json", "--config", "--help", "--version", "--quiet", "--verbose"}


@cache
def flags(*verb: str) -> set[str]:
    return {*FLAG.findall(patchq(*verb, "--help", cwd=ROOT).out)}
