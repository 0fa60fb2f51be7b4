"""A clone whose `origin` is a project on the fake, and rounds between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from patchq.forge.connect import Project
from patchq.forge.github import GitHub
from patchq.forge.gitlab import GitLab
from patchq.forge.sync import Sync
from patchq.forge.wire import Wire
from patchq.gate.api import Gate
from tests.forge.fake import PROJECT, TOKEN, Fake
from tests.forge.fake_gitlab import FULL_PATH, GitLabFake
from tests.helpers.command import block, drop, give, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

CONFIG = "version: 1\nforge:\n  kind: github\n  write_seconds: 0\n"


class Scene:
    """A clone with a queue, and the fake forge that has its `origin`."""

    def __init__(
        self,
        place: Path,
        more: str = "",
        *,
        judged: bool = True,
        lines: int = 100,
        prefix: str = "",
        kind: str = "github",
    ) -> None:
        bare = place / "acme/demo.git"
        bare.parent.mkdir(parents=True)
        text = "".join(f"a{n} = {n}\n" for n in range(1, lines + 1))
        files = {"a.py": text, "b.py": "x = 1\n", ".patchq.yaml": CONFIG + more}
        self.clone = make_repo(place / "clone", files)
        git("clone", "-q", "--bare", str(self.clone), str(bare), cwd=place)
        git("remote", "add", "origin", str(bare), cwd=self.clone)
        git("fetch", "-q", "origin", cwd=self.clone)
        patchq("init", "--target", "main", cwd=self.clone)
        self.kind, self.said = kind, list[str]()
        self.fake = Fake(bare, prefix, judged=judged) if kind == "github" else GitLabFake(bare)
        self.gate = Gate.open(self.clone)
        self.begin()

    def begin(self, say: Callable[[str], None] | None = None) -> None:
        """Start a process anew, as far as it remembers something."""
        host = f"https://api.{self.kind}.com"
        wire = Wire(host, lambda: TOKEN, 0, self.fake.transport, lambda seconds: None)
        self.forge: Project = (
            GitHub(wire, PROJECT) if self.kind == "github" else GitLab(wire, FULL_PATH)
        )
        self.sync = Sync(self.forge, say or self.said.append)

    def commit_config(self, more: str) -> None:
        """Commit another `forge` section to main, here and there."""
        commit_files(self.clone, {".patchq.yaml": CONFIG + more})
        git("push", "-q", "--no-verify", "origin", "main", cwd=self.clone)

    def round(self) -> list[str]:
        """Make rounds until nothing is decided; return what is said."""
        before = len(self.said)
        self.sync.rounds(self.gate)
        return self.said[before:]

    def propose(self, id: str, old: str, new: str, head: str = "", code: int = 0) -> Any:
        """Return the report of a change of one line."""
        return give(self.clone, id, head + block("a.py", f"{old}\n", f"{new}\n"), code)

    def propose_all(self, changes: Mapping[str, tuple[str, str]]) -> None:
        """Propose changes of one line each at once."""
        texts = {f"{id}.md": block("a.py", f"{a}\n", f"{b}\n") for id, (a, b) in changes.items()}
        drop(self.clone / ".patchq", texts)
        patchq("run", cwd=self.clone)

    def report(self, id: str) -> Any:
        return report(self.clone / ".patchq", id)

    def there(self, branch: str = "main") -> str:
        return git("rev-parse", branch, cwd=self.fake.bare)

    def push(self, path: str, text: str, message: str = "By hand") -> str:
        """Push a commit to main by a clone of somebody else; return it."""
        other = self.clone.parent / "other"
        if not other.exists():
            git("clone", "-q", str(self.fake.bare), str(other), cwd=self.clone)
        git("pull", "-q", cwd=other)
        commit = commit_files(other, {path: text}, message)
        git("push", "-q", "origin", "main", cwd=other)
        return commit


@pytest.fixture
def kind() -> str:
    """The forge of a scene, where a test does not name another one."""
    return "github"


@pytest.fixture
def scene(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> Scene:
    """A scene; a parameter is more of its `forge` section."""
    return Scene(tmp_path, getattr(request, "param", ""), kind=kind)
