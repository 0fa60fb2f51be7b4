"""Whoever asks the oracle once reads only what touches the same paths, and is told the same."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from patchq.core.model.values import Source
from patchq.gate.config import config_file
from patchq.gate.git.merges import touching
from patchq.gate.git.repository import Repository
from patchq.gate.land import worker
from patchq.gate.land.overlaps import foreseen, waiting
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.session import Choice, Session, Tips, compose
from patchq.gate.queue import Claim, layout
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.report.schema import Report
from tests.helpers.command import block, drop
from tests.helpers.gitrepo import git, identity, make_repo

TEXT = "".join(f"line {number}\n" for number in range(1, 21))
FILES = {f"d/f{n}.txt": TEXT for n in range(4)} | {"ä ö.txt": TEXT, "plain": TEXT}
GONE = "*** Begin Patch\n*** Delete File: {}\n*** End Patch\n"
MOVED = "*** Begin Patch\n*** Update File: {}\n*** Move to: {}\n*** End Patch\n"


def _edit(path: str, line: int, new: str = "LINE") -> str:
    return block(path, f"line {line}\n", f"{new} {line}\n")


WAITING = {
    "w0": _edit("d/f0.txt", 3),
    "w1": _edit("d/f1.txt", 3),
    "umlaut": _edit("ä ö.txt", 3),
    "made": block("new/deep/x.txt", "", "x\n"),
    "file": block("thing", "", "x\n"),
    "gone": GONE.format("plain"),
    "moved": MOVED.format("d/f2.txt", "e/f2.txt"),
    "many": _edit("d/f0.txt", 9) + _edit("d/f3.txt", 9),
}
ASKED = {
    # the response, whom it meets, and how many reports are read for that
    "a line of another": (_edit("d/f0.txt", 3, "my"), {"w0"}, 2),
    "beside it": (_edit("d/f0.txt", 16), set[str](), 2),
    "two at once": (_edit("d/f0.txt", 3) + _edit("d/f3.txt", 9), {"w0", "many"}, 2),
    "a name beyond ASCII": (_edit("ä ö.txt", 3, "my"), {"umlaut"}, 1),
    "a new file": (block("d/own.txt", "", "x\n"), set[str](), 5),
    "the same new file": (block("new/deep/x.txt", "", "y\n"), {"made"}, 1),
    "a file where another makes a directory": (block("new", "", "y\n"), {"made"}, 1),
    "a directory where another makes a file": (block("thing/y.txt", "", "y\n"), {"file"}, 1),
    "what another deletes": (_edit("plain", 3), {"gone"}, 1),
    "what another moves": (_edit("d/f2.txt", 3), {"moved"}, 1),
    "where another moves it": (block("e/f2.txt", "", "y\n"), {"moved"}, 1),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of `WAITING` wait."""
    place = tmp_path_factory.mktemp("foresight")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in identity(place).items():
            patch.setenv(name, value)
        repo = make_repo(place / "repo", FILES)
        git("branch", "-M", "main", cwd=repo)
        layout.create(repo / ".patchq")
        session = _session(repo)
        session.queue.acquire()
        drop(session.queue_root, {f"{id}.md": text for id, text in WAITING.items()})
        while worker.turn(session, lambda told: None):
            pass
    return repo


def _session(repo: Path) -> Session:
    """As a process sees it that has just begun."""
    settings = config_file.parse(b"version: 1\npaths: {new_directories: true}\n")
    queue = StoreQueue(repo / ".patchq")
    return compose(RepoContext(Repository.open(repo), queue, repo / ".patchq", settings, "main"))


def _met(session: Session, text: str) -> set[str]:
    data = text.encode()
    claim = Claim("", Source("a.md", sha256(data).hexdigest(), len(data)), data, id="asked")
    decision = process(claim, session, Tips(session), replace(Choice(), dry_run=True))
    problems = foreseen.foreseen(decision, session).problems
    return {p.conflicts_with.batch or "" for p in problems if p.conflicts_with}


@pytest.mark.parametrize(("text", "met", "most"), ASKED.values(), ids=ASKED)
def test_whoever_asks_once_is_told_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch, text: str, met: set[str], most: int
) -> None:
    whole = _session(root)
    waiting.board(whole)
    assert _met(whole, text) == met
    monkeypatch.setattr(waiting, "_FEW", 0)
    session, read = _session(root), set[str]()
    load = session.queue.load

    def loaded(id: str) -> Report | None:
        read.add(id)
        return load(id)

    monkeypatch.setattr(session.queue, "load", loaded)
    assert _met(session, text) == met
    assert len(read) <= most
    assert waiting.known(session.repo) is None
    assert _met(session, text) == met
    assert waiting.known(session.repo) is not None, "who asks again keeps a board"


def test_what_git_cannot_tell_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repository.open(root)
    assert touching(repo, ["0" * 40], ["plain"]) == {}, "no commit, as when it is damaged"
    assert touching(repo, [], []) is None
    tip = git("rev-parse", "main", cwd=root)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        assert touching(repo, [tip], ["plain"]) is None
    monkeypatch.setattr(waiting, "_FEW", 0)
    monkeypatch.setattr(waiting, "touching", lambda *words: None)
    assert _met(_session(root), _edit("d/f0.txt", 3, "my")) == {"w0"}
