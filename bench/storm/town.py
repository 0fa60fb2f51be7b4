"""The repository that a storm goes over: generated with a history, or the pack of a clone.

`main` is the target.  HEAD stands on a branch of its own, so that the target's only work tree is
the linked one in which a person commits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.git import WHO, BenchError, data, fast_import, git, new_repository, new_store, quoted
from bench.speed.repos import path_of, text_of
from bench.storm.facts import Facts
from bench.storm.intent import lines_of
from tests.helpers.gitrepo import operators_file

COMMITS = 120
TARGET = "main"
_LONGEST = 100_000
_SHORTEST = 12
SUFFIXES = (".py", ".c", ".h", ".cc", ".js", ".ts", ".go", ".rs", ".java", ".rb", ".sh", ".txt")
_MARKS = ("<<<<", "====", ">>>>", "----", "++++", "```", "~~~", "***", "@@", "diff ")


@dataclass(frozen=True, slots=True)
class Town:
    """`repo` with its linked work tree `hand`; `files` are the paths worth editing."""

    repo: Path
    hand: Path
    home: Path
    start: str
    files: list[str]


def build(room: Path, home: Path, files: int, clone: Path | None, seed: int) -> Town:
    store = new_store(room / "store.git", home=home)
    if clone is not None:
        words = ("-c", "fetch.unpackLimit=1", "fetch", "-q", str(clone.absolute()))
        git(store, *words, f"HEAD:refs/heads/{TARGET}", home=home)
    else:
        fast_import(store, _history(files, seed), home=home)
    side = fast_import(store, _side(), home=home)[1]
    start = git(store, "rev-parse", f"refs/heads/{TARGET}", home=home).decode().strip()
    repo, hand = room / "repo", room / "hand"
    new_repository(repo, store, {TARGET: start, "side": side}, head="side")
    git(repo, "read-tree", "--reset", "-u", "side", home=home)
    git(repo, "worktree", "add", "-q", str(hand), TARGET, home=home)
    (repo / ".git/info/exclude").write_text(".patchq/\n.patchq.yaml\n")
    (repo / ".patchq/inbox").mkdir(parents=True)
    configure(repo, "auto", syntax=clone is None)
    return Town(repo, hand, home, start, _editable(repo, home))


def configure(repo: Path, mode: str, syntax: bool | None = None) -> None:
    """Have patchq propose or land what comes; `syntax`: whether it is judged, else as before."""
    path = operators_file(repo)
    if syntax is None:
        syntax = "syntax: true" in path.read_text()
    path.write_text(
        f"version: 1\ntarget: {TARGET}\nmode: {mode}\nvalidate: {{syntax: {str(syntax).lower()}}}\n"
    )


def _editable(repo: Path, home: Path) -> list[str]:
    facts = Facts(repo, home)
    listed = facts.git("ls-tree", "-r", "-z", TARGET).split("\0")[:-1]
    paths = [
        entry.split("\t", 1)[1]
        for entry in listed
        if entry.startswith("100644 ") and entry.endswith(SUFFIXES)
    ]
    texts = {path: facts.text(TARGET, path) or "" for path in paths}
    found = [p for p, text in texts.items() if is_plain(text) and text.count("\n") >= _SHORTEST]
    facts.close()
    if len(found) < 10:
        raise BenchError(f"{repo}: only {len(found)} files are plain text to edit")
    return found


def is_plain(text: str) -> bool:
    """Whether a text can be quoted in every format as it stands."""
    return (
        text.endswith("\n")
        and len(text) < _LONGEST
        and all(_is_plain_line(line) for line in lines_of(text))
    )


def _is_plain_line(line: str) -> bool:
    bare = line.strip()
    return not bare.startswith(_MARKS) and line[:-1].replace("\t", "").isprintable()


def _side() -> Iterator[bytes]:
    yield b"commit refs/heads/side\nmark :1\ncommitter %b\ndata 5\nside\n" % WHO
    yield b'M 100644 inline "README"\ndata 5\nside\n\n\n'


def _history(files: int, seed: int) -> Iterator[bytes]:
    """All files, and then commits that edit, create, rename and delete some."""
    rng = random.Random(f"history {seed}")
    texts = {path_of(number): text_of(number) for number in range(files)}
    yield b"commit refs/heads/%b\nmark :1\ncommitter %b\ndata 6\nstart\n" % (TARGET.encode(), WHO)
    for path, text in texts.items():
        yield b"M 100644 inline %b\n" % quoted(path) + data(text.encode())
    yield b"\n"
    for number in range(2, COMMITS + 2):
        yield b"commit refs/heads/%b\nmark :%d\ncommitter %b\n" % (TARGET.encode(), number, WHO)
        yield data(b"Change %d" % number)
        for path in rng.sample(sorted(texts), 3):
            texts[path] = _edited(texts[path], rng, f"change {number}")
            yield b"M 100644 inline %b\n" % quoted(path) + data(texts[path].encode())
        if number % 10 == 0:
            path = rng.choice(sorted(texts))
            new = path.replace(".py", f"_{number}.py")
            texts[new] = texts.pop(path)
            yield b"R %b %b\n" % (quoted(path), quoted(new))
        yield b"\n"


def _edited(text: str, rng: random.Random, tag: str) -> str:
    lines = lines_of(text)
    at = rng.choice([at for at, line in enumerate(lines) if line.strip()])
    lines[at] = f"{lines[at][:-1].split('  # ')[0]}  # {tag}\n"
    return "".join(lines)
