"""What a refusal costs, against a landing, whatever the repository holds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from bench.git import WHO, BenchError, data, fast_import, git, new_repository, new_store, quoted
from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from tests.helpers.gitrepo import write_config

EACH = 60
"""Responses of one run."""
LINES = 60
SHAPES = {
    "one directory": "src/module_{0:06}.py",
    "directories": "area{1}/pkg{2}/module_{0:06}.py",
}
KINDS = ("quote that stands nowhere", "foreign quote", "path of a wrong name", "path of no file")


def refusing(ground: Ground) -> Iterator[Goal]:
    """Runs of a queue that ran before: misquotes and wrong paths, and good edits."""
    small, large = (50, 1000) if ground.quick else (200, 10_000)
    sites = [
        _Site(ground, "one directory", small),
        _Site(ground, "one directory", large),
        _Site(ground, "directories", large),
    ]
    growth: list[float] = []
    ratios: dict[str, list[float]] = {}
    for _ in range(ground.rounds):
        spent = {}
        for site in sites:
            idle, refused, landed = (site.spent(kind) for kind in ("", "refused", "landed"))
            spent[site.name] = refused
            ratio = (refused - idle) / max(landed - idle, 1e-3)
            ratios.setdefault(site.name, []).append(ratio)
        growth.append(spent[sites[1].name] / spent[sites[0].name])
    yield Goal(f"{EACH} refusals at {sites[1].name} / at {small:,}", growth, 1.5)
    yield from _behind(ground)
    for name, values in ratios.items():
        yield Goal(f"a refusal / a landing, {name}", values, 2)


def _behind(ground: Ground) -> Iterator[Goal]:
    """The same refusals behind a long history and a short one: who quotes what is nowhere may have
    read an older commit, which is looked for."""
    short, long = (500, 2_000) if ground.quick else (500, 50_000)
    sites = [_Site(ground, "one directory", 50, commits) for commits in (short, long)]
    ratios: list[float] = []
    for _ in range(ground.rounds):
        one, other = (site.spent("refused") for site in sites)
        ratios.append(other / one)
    yield Goal(f"{EACH} refusals behind {long:,} commits / behind {short:,}", ratios, 1.5)


class _Site:
    """A repository of so many files and commits, made anew for each run."""

    def __init__(self, ground: Ground, shape: str, files: int, commits: int = 1) -> None:
        self.ground, self.files, self.path = ground, files, SHAPES[shape]
        self.name = f"{files:,} files in {shape}"
        store = f"{shape[0]}{files}-{commits}.git"
        self.store = new_store(ground.room / store, home=ground.home)
        self.base = fast_import(self.store, self._history(commits), home=ground.home)[commits]

    def spent(self, kind: str) -> float:
        """Processor time of a `run` over the responses of a kind; none for an empty one."""
        repo = self.ground.room / "site"
        shutil.rmtree(repo, ignore_errors=True)
        new_repository(repo, self.store, {"main": self.base, "side": self.base}, head="side")
        git(repo, "read-tree", "side", home=self.ground.home)
        write_config(repo, "version: 1\ntarget: main\nmode: auto\n")
        (repo / ".patchq/inbox").mkdir(parents=True)
        run = [*self.ground.command, "run"]
        self.ground.spent(run, repo)  # the first one takes in the history's ids, once
        for number, form in enumerate(islice(cycle(KINDS), EACH if kind else 0)):
            text = self._response(number, "" if kind == "landed" else form)
            (repo / f".patchq/inbox/r{number:03}.md").write_text(text)
        ends = (0, 1)  # 1: something was refused
        seconds = self.ground.spent(run, repo, ends=ends)
        _count(repo / ".patchq" / ("rejected" if kind == "refused" else "done"), bool(kind))
        return seconds

    def _project(self) -> Iterator[bytes]:
        yield b"commit refs/heads/main\nmark :1\ncommitter %b\ndata 4\nbase\n" % WHO
        for number in range(self.files):
            yield b"M 100644 inline %b\n" % quoted(self._at(number))
            yield data("".join(_lines(number, k) for k in range(LINES)).encode())
        yield b"\n"

    def _history(self, commits: int) -> Iterator[bytes]:
        yield from self._project()
        for number in range(2, commits + 1):
            yield b"commit refs/heads/main\nmark :%d\ncommitter %b\n" % (number, WHO)
            yield b"data 4\nnext\nfrom :%d\n" % (number - 1)
            yield b"M 100644 inline notes.txt\n" + data(b"%d\n" % number) + b"\n"

    def _at(self, number: int) -> str:
        return self.path.format(number, number // 1000, number // 20 % 50)

    def _response(self, number: int, kind: str) -> str:
        file = number * 7919 % self.files
        path, old = self._at(file), _lines(file, number)
        new = old.replace("x, ", "1 + x, ")
        match kind:
            case "quote that stands nowhere":
                old = old.replace("compute", "computed")
            case "foreign quote":
                old = f"zorp_{number} = quux({number})\nit is not here\n"
            case "path of a wrong name":
                path = path.replace("module", "modul")
            case "path of no file":
                path = f"lib/nothing_{number}.ts"
        return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def _lines(number: int, at: int) -> str:
    return f"def f_{number}_{at}(x):\n    return compute(x, {at})\n"


def _count(directory: Path, some: bool) -> None:
    found = len([*directory.glob("*.report.json")]) if directory.exists() else 0
    if some and found != EACH:
        raise BenchError(f"{directory} has {found} reports, not {EACH}")
