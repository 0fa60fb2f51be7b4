"""Decide on a response in this process, on files of its own, up to the commit that would land."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pygit2

from patchq.core.model.values import Source
from patchq.gate.config.schema import Config
from patchq.gate.git.branches import Branches
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Tips, compose
from patchq.gate.queue import Claim
from patchq.gate.queue.engine import StoreQueue

BASE = "BASE-OF-THE-CASE"
"""Stands in a response for the commit that holds the files."""
ROOT = "ROOT-OF-THE-CASE"
"""Stands in a response for the absolute path of the repository's work tree."""
WHO = pygit2.Signature("A", "a@x.org", 1_700_000_000, 0)


@dataclass(frozen=True, slots=True)
class Row:
    """A response and what it must give: all files `after`, or the codes of its refusal.

    `before` are all files that `main` has; with `since`, it has these by now, and `before` is the
    commit that stands for `BASE`.  What `after` does not name is as before; None for a
    file says that it is gone.  `state` is `applied` or `proposed` where it matters.
    """

    name: str
    before: Mapping[str, str | bytes]
    response: str
    after: Mapping[str, str | bytes | None] | None = None
    codes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    """What the messages of the problems and warnings hold."""
    state: str | None = None
    since: Mapping[str, str | bytes] | None = None
    config: Config = field(default_factory=Config)


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    files: dict[str, bytes] | None
    """All files of the commit that would land."""


class Bench:
    """A repository in which rows are decided, one after another."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._git = pygit2.init_repository(str(place))
        self._git.set_head("refs/heads/idle")
        self._count = 0

    def decide(self, row: Row) -> Verdict:
        commit = self._commit(row.before)
        if row.since is not None:
            self._commit(row.since, commit)
        queue = StoreQueue(self.place / ".patchq")
        repo = Repository.open(self.place)
        branches = Branches(repo)
        session = compose(
            RepoContext(repo, queue, self.place / ".patchq", row.config, "main", branches)
        )
        text = row.response.replace(BASE, commit).replace(ROOT, str(self.place))
        raw = text.encode("utf-8", "surrogateescape")
        self._count += 1
        id = f"case-{self._count}"
        source = Source(f"{id}.md", sha256(raw).hexdigest(), len(raw))
        try:
            with session.repo.buffer.tentative():
                claim = Claim(str(self._count), source, raw, id=id)
                decision = process(claim, session, Tips(session))
                if not decision.commit or decision.state not in ("applied", "proposed"):
                    return Verdict(decision, None)
                tree = session.repo.tree(decision.commit)
                return Verdict(decision, {path: tree.read(path) for path in tree.paths()})
        finally:
            session.close()

    def _commit(self, files: Mapping[str, str | bytes], *parents: str) -> str:
        (self.place / ".gitignore").write_bytes(_bytes(files.get(".gitignore", "")))
        index = pygit2.Index()
        for path, text in files.items():
            blob = self._git.create_blob(_bytes(text))
            index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode.BLOB))
        tree = index.write_tree(self._git)
        commit = self._git.create_commit(None, WHO, WHO, "Base\n", tree, list(parents))
        self._git.references.create("refs/heads/main", commit, force=True)
        return str(commit)


def check(bench: Bench, row: Row) -> None:
    """Fail where a row's response gives something else than the row says."""
    verdict = bench.decide(row)
    decision = verdict.decision
    errors = [problem for problem in decision.problems if problem.severity == "error"]
    said = [f"{problem.code}: {problem.message}" for problem in decision.problems]
    now = row.before if row.since is None else row.since
    before = {path: _bytes(text) for path, text in now.items()}
    if row.after is None:
        assert verdict.files is None, f"it lands: {verdict.files}"
        assert tuple(problem.code for problem in errors) == row.codes, said
    else:
        assert verdict.files is not None, (decision.state, said)
        wanted = before | {path: _bytes(text or b"") for path, text in row.after.items()}
        gone = {path for path, text in row.after.items() if text is None}
        wanted = {path: text for path, text in wanted.items() if path not in gone}
        assert verdict.files == wanted
        assert decision.target == "main"
    assert {problem.code for problem in decision.problems}.issuperset(row.warnings), said
    for words in row.says:
        assert any(words in message for message in said), said
    if row.state is not None:
        assert decision.state == row.state, (decision.state, said)


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
