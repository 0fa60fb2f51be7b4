"""Cases from aider's chat history and the commits that it made.

aider appends every chat to `.aider.chat.history.md`: a session begins with `# aider chat started
at`, what the user wrote stands behind `#### `, what aider itself said behind `> `, both with two
blanks at the line's end, and everything else is the model's answer as it came.  After an answer it
says `Applied edit to PATH` for each file, and `Commit HASH SUBJECT`.

A case is an answer behind which exactly the files that it says it edited were committed.  Where the
answer's own blocks, each applied to the only place of its text, give that commit, the result has to
be exact; elsewhere (aider matches by similarity, formatters run on commit) it may be refused, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pygit2

from bench.corpus.cases import Case, encode
from bench.git import BenchError

HISTORY = ".aider.chat.history.md"
MOST_FILES, MOST_BYTES = 5000, 64 * 1024 * 1024
"""Of a commit that a case is made of; larger ones are left out."""

_SESSION = re.compile(r"# aider chat started at \d{4}-")
_SAID = re.compile(r"(?:> ?|#### )(.*?) {2}$")
_APPLIED = re.compile(r"Applied edit to (.+)")
_COMMIT = re.compile(r"Commit ([0-9a-f]{7,40}) ")
_BLOCK = re.compile(
    r"^<{5,9} SEARCH\n(?P<old>.*?)^={5,9}\n(?P<new>.*?)^>{5,9} REPLACE[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """An answer, the paths that aider says it edited, and the commit (hex, short) behind it."""

    answer: str
    paths: tuple[str, ...]
    commit: str | None


def turns_of(history: str) -> Iterator[Turn]:
    """The answers of a chat history, in its order."""
    answer: list[str] = []
    said: list[str] = []
    for line in [*history.splitlines(keepends=True), "# aider chat started at 0000-\n"]:
        own = _SAID.fullmatch(line.rstrip("\n"))
        if own and line.startswith(">"):
            said.append(own[1])
            continue
        begins = _SESSION.match(line) or own
        if said or begins:
            if "".join(answer).strip():
                yield _turn("".join(answer), said)
            answer, said = [], []
        if not begins:
            answer.append(line)


def _turn(answer: str, said: Sequence[str]) -> Turn:
    paths: list[str] = []
    for line in said:
        if applied := _APPLIED.fullmatch(line):
            paths.append(applied[1])
        elif paths and (commit := _COMMIT.match(line)):  # one before is of the user's own changes
            return Turn(answer.strip("\n") + "\n", tuple(paths), commit[1])
    return Turn(answer.strip("\n") + "\n", tuple(paths), None)


def aider_cases(place: Path) -> Iterator[Case]:
    """The cases of a repository that aider worked in, the oldest first."""
    try:
        repo = pygit2.Repository(str(place))
        history = (place / HISTORY).read_text(errors="surrogateescape")
    except (OSError, pygit2.GitError) as error:
        raise BenchError(f"no repository with {HISTORY}: {place}: {error}") from error
    whole = True
    for turn in turns_of(history):
        # Behind an answer that was applied in part, nobody knows the files that the next one met.
        met_all, whole = whole, bool(turn.commit) or not turn.paths
        if met_all and turn.commit and (case := _case(repo, turn)):
            yield case


def _case(repo: pygit2.Repository, turn: Turn) -> Case | None:
    try:
        commit = repo.revparse_single(turn.commit or "").peel(pygit2.Commit)
    except (KeyError, ValueError, pygit2.GitError):  # rewritten since, or ambiguous
        return None
    if len(commit.parents) != 1:
        return None
    before, after = (_files(repo, tree) for tree in (commit.parents[0].tree, commit.tree))
    if before is None or after is None:
        return None
    paths = before.keys() | after.keys()
    changed = {path: after.get(path) for path in paths if before.get(path) != after.get(path)}
    if not changed or changed.keys() != set(turn.paths):
        return None
    certain = literal(turn.answer, before) == after
    return Case(
        id=f"aider-{commit.id}",
        source="aider-history",
        format=_format(turn.answer),
        slip="none",
        response=encode(turn.answer),
        before=before,
        after=changed,
        expect="exact" if certain else "exact_or_refuse",
    )


def _files(repo: pygit2.Repository, tree: pygit2.Tree) -> dict[str, bytes] | None:
    """All files of a tree; None where there are too many."""
    found: dict[str, bytes] = {}
    size = 0
    waiting = [("", tree)]
    while waiting:
        folder, inner = waiting.pop()
        for entry in inner:
            path = f"{folder}{entry.name}"
            if isinstance(entry, pygit2.Tree):
                waiting.append((f"{path}/", entry))
            elif isinstance(entry, pygit2.Blob) and entry.filemode != pygit2.enums.FileMode.LINK:
                found[path] = entry.data
                size += entry.size
            if len(found) > MOST_FILES or size > MOST_BYTES:
                return None
    return found


def literal(answer: str, before: Mapping[str, bytes]) -> dict[str, bytes] | None:
    """The files after an answer's blocks, each at the only place of its text; None where one has
    no such place, or names no file."""
    files = dict(before)
    for block in _BLOCK.finditer(answer):
        above = [line for line in answer[: block.start()].splitlines() if line.strip()]
        while above and re.match(r"\s*(`{3,}|~{3,}|<\w+>)", above[-1]):
            above.pop()
        path = above[-1].strip().strip("`*#: ") if above else ""
        old, new = encode(block["old"]), encode(block["new"])
        text = files.get(path, b"")
        if not path or (old and text.count(old) != 1) or (not old and text):
            return None
        at = text.find(old)
        if at > 0 and text[at - 1 : at] != b"\n":
            return None
        files[path] = text.replace(old, new, 1) if old else new
    return None if files == before else files


def _format(answer: str) -> str:
    if _BLOCK.search(answer):
        return "search_replace"
    return "unified_diff" if re.search(r"^(--- |\+\+\+ |```diff)", answer, re.M) else "whole_file"
