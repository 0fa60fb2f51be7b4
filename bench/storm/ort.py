"""Git's own three-way merge (ORT) of what responses ask for, with their bases as merge bases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.git import WHO, data, fast_import, git, new_store, quoted
from bench.storm.facts import Facts
from bench.storm.intent import Intent, on_base

Change = Mapping[str, str | None] | str
"""The paths that a commit changes (None: gone), or the id of its whole tree."""


def merged(facts: Facts, store: Path, cases: Sequence[tuple[Intent, str]]) -> list[str | None]:
    """The merges of intents into tips, made in `store`: the trees of those that are clean."""
    commits: list[tuple[str, Change]] = []
    for intent, tip in cases:
        commits.append((intent.base, facts.oid(f"{tip}^{{tree}}")))
        commits.append((intent.base, changed(facts, intent)))
    made = iter(write_commits(store, commits, facts.home))
    return merges(store, list(zip(made, made, strict=True)), facts.home)


def changed(facts: Facts, intent: Intent) -> dict[str, str | None]:
    """What an intent makes of its own base."""
    texts = {edit.path: facts.text(intent.base, edit.path) or "" for edit in intent.edits}
    return on_base(intent, texts)


def apart(room: Path, repo: Path, home: Path) -> Path:
    """A repository beside `repo` that sees its objects and writes none there."""
    store = new_store(room, home=home)
    objects = git(repo, "rev-parse", "--git-path", "objects", home=home).decode().strip()
    (store / "objects/info").mkdir(exist_ok=True)
    (store / "objects/info/alternates").write_text(f"{(repo / objects).resolve()}\n")
    return store


def write_commits(store: Path, commits: Sequence[tuple[str, Change]], home: Path) -> list[str]:
    """Commits on a parent each, with paths changed (None: gone), or with that tree (an id)."""
    marks = fast_import(store, _stream(commits), home=home)
    return [marks[number] for number in range(1, len(commits) + 1)]


def _stream(
    commits: Sequence[tuple[str, Change]],
) -> Iterator[bytes]:
    for number, (parent, change) in enumerate(commits, 1):
        yield b"commit refs/heads/made\nmark :%d\ncommitter %b\ndata 4\nmade\n" % (number, WHO)
        yield b"from %b\n" % parent.encode()
        if isinstance(change, str):
            yield b'M 040000 %b ""\n' % change.encode()
            continue
        for path, text in change.items():
            if text is None:
                yield b"D %b\n" % quoted(path)
            else:
                yield b"M 100644 inline %b\n" % quoted(path)
                yield data(text.encode("utf-8", "surrogateescape"))
        yield b"\n"


def merges(store: Path, pairs: Sequence[tuple[str, str]], home: Path) -> list[str | None]:
    """Git's own merge (ORT) of each pair of commits: its tree, or None where it conflicts."""
    asked = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs).encode()
    words = ("merge-tree", "--write-tree", "--stdin", "--no-messages", "--name-only")
    if not pairs:
        return []
    told = iter(git(store, *words, home=home, data=asked).decode("utf-8", "replace").split("\0"))
    found: list[str | None] = []
    for clean in told:
        if clean:
            tree = next(told)
            found.append(tree if clean == "1" else None)
            while next(told):
                pass
    return found
