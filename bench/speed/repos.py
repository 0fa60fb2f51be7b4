"""Generated repositories of any size, and the small changes that the speed bench makes in them.

Three levels, at most 100 entries in a directory, files of 1 to 4 KiB of Python-like text, one
commit, one pack.  Everything follows from the numbers, so two runs measure the same bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from pathlib import Path

from bench.git import WHO, BenchError, data, fast_import, git, new_repository, new_store, quoted
from tests.helpers.gitrepo import write_config

VERBS = ("load", "merge", "parse", "render", "resolve", "count", "check", "store")
NOUNS = ("order", "invoice", "account", "session", "record", "ticket", "parcel")
FUNCTIONS = 4
"""Every file has at least so many functions, and so many changes can be made in it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One small edit: the lines `old`, unique in their file, become `new`."""

    number: int
    path: str
    old: str
    new: str

    def response(self) -> bytes:
        """The change as a SEARCH/REPLACE response."""
        return (
            f"{self.path}\n<<<<<<< SEARCH\n{self.old}=======\n{self.new}>>>>>>> REPLACE\n"
        ).encode()


def path_of(number: int) -> str:
    area, package, module = number // 10_000, number // 100 % 100, number % 100
    return f"area{area:02d}/pkg{package:02d}/mod{module:02d}.py"


@cache
def function(kind: int) -> str:
    verb, noun = VERBS[kind % len(VERBS)], NOUNS[kind % len(NOUNS)]
    return (
        f"def {verb}_{noun}_{kind}(items, limit={kind * 37 % 1000}):\n"
        f'    """{verb.capitalize()} the {noun} of every item, up to the limit."""\n'
        f"    total = {kind * 7919 % 10_000}\n"
        "    for number, item in enumerate(items):\n"
        "        if number >= limit:\n"
        "            break\n"
        f"        total += item.{noun} * {kind % 13 + 1}\n"
        "    return total\n"
    )


def functions_of(number: int) -> list[str]:
    return [function((number * 31 + step) % 509) for step in range(FUNCTIONS + number * 7 % 11)]


def text_of(number: int) -> str:
    title = f'"""Module {number} of a generated project: what it holds has no meaning."""\n'
    return "\n\n".join([title + "\nimport os\nimport sys\n", *functions_of(number)])


def changes(count: int, files: int) -> list[Change]:
    """`count` changes; nine of ten touch a file for the first time, the tenth one goes back to a
    file of the nine before it.  Raises BenchError when the repository is too small for so many."""
    if count > files * FUNCTIONS // 2:
        raise BenchError(f"{count} changes are too many for {files} files")
    return [_change(number, files) for number in range(count)]


def _change(number: int, files: int) -> Change:
    first = number - 9 if number % 10 == 9 else number
    place = 2 * (first // files) + (number % 10 == 9)
    target = first * 7919 % files
    old = "".join(functions_of(target)[place].splitlines(keepends=True)[:3])
    new = old.rstrip("\n") + f" + {number}\n    limit = max(limit, {number})\n"
    return Change(number, path_of(target), old, new)


def results(made: Sequence[Change]) -> dict[str, str]:
    """The text of every touched file after all the changes."""
    texts: dict[str, str] = {}
    for change in made:
        before = texts.get(change.path) or text_of(number_of(change.path))
        if before.count(change.old) != 1:
            raise BenchError(f"{change.path}: the lines of change {change.number} are not unique")
        texts[change.path] = before.replace(change.old, change.new)
    return texts


def number_of(path: str) -> int:
    area, package, module = path.removesuffix(".py").split("/")
    return int(area[4:]) * 10_000 + int(package[3:]) * 100 + int(module[3:])


def mailbox(made: Sequence[Change]) -> bytes:
    """The changes as `git format-patch --stdout` would write them."""
    texts: dict[str, str] = {}
    mails: list[str] = []
    for change in made:
        before = texts.get(change.path) or text_of(number_of(change.path))
        after = texts[change.path] = before.replace(change.old, change.new)
        name = change.path
        lines = unified_diff(
            before.splitlines(True), after.splitlines(True), f"a/{name}", f"b/{name}"
        )
        mails.append(
            f"From {change.number:040x} Mon Sep 17 00:00:00 2001\n"
            "From: Bench <bench@example.org>\nDate: Tue, 14 Nov 2023 22:13:20 +0000\n"
            f"Subject: [PATCH] Change {change.number}\n\n---\n"
            f"diff --git a/{name} b/{name}\n{''.join(lines)}-- \n2.39\n\n"
        )
    return "".join(mails).encode()


class Site:
    """The repositories of one size, all with the same base commit on `main`.

    `plain` has another branch in its work tree, `tree` has `main` checked out, and `mail` is a
    linked worktree of it on a branch of its own.
    """

    def __init__(self, room: Path, files: int, home: Path) -> None:
        self.room, self.files, self.home = room, files, home
        self._spent = 0
        room.mkdir()
        self.store = new_store(room / "store.git", home=home)
        marks = fast_import(self.store, _project(files), home=home)
        self.base, self.side = marks[1], marks[2]
        self.plain, self.tree, self.mail = room / "plain", room / "tree", room / "mail"

    def fresh_plain(self, mode: str) -> Path:
        """`plain`, new from the ground up.

        The one before is put aside, to go with the room: ext4 gives out no inode that was freed in
        the last minutes, and looks at all of them for each file that is made, so whoever comes
        after a removal would pay for it, and for each of thousands of files.
        """
        if self.plain.exists():
            self._spent += 1
            self.plain.rename(self.room / f"spent-{self._spent}")
        refs = {"main": self.base, "side": self.side}
        new_repository(self.plain, self.store, refs, head="side")
        git(self.plain, "read-tree", "--reset", "-u", "side", home=self.home)
        self._settle(self.plain, mode)
        return self.plain

    def fresh_tree(self) -> Path:
        """`tree`, checked out at the base; the first time takes a while."""
        if not self.tree.exists():
            refs = {"main": self.base, "mail": self.base}
            new_repository(self.tree, self.store, refs, head="main")
            git(self.tree, "read-tree", "--reset", "-u", "main", home=self.home)
        git(self.tree, "reset", "-q", "--hard", self.base, home=self.home)
        self._forget(self.tree / ".git")
        shutil.rmtree(self.tree / ".patchq", ignore_errors=True)
        self._settle(self.tree, "auto")
        return self.tree

    def fresh_mail(self) -> Path:
        """`mail`, likewise, and `tree`."""
        if self.mail.exists():
            git(self.mail, "reset", "-q", "--hard", self.base, home=self.home)
        self.fresh_tree()
        if not self.mail.exists():
            git(self.tree, "worktree", "add", "-q", str(self.mail), "mail", home=self.home)
        return self.mail

    def _forget(self, git_dir: Path) -> None:
        """Take away all refs and objects that came after the base; that one is in the packs."""
        packs = {pack.name for pack in (self.store / "objects/pack").iterdir()}
        for pack in (git_dir / "objects/pack").iterdir():
            if pack.name not in packs:
                pack.unlink()
        stale = [*git_dir.glob("objects/[0-9a-f][0-9a-f]"), *git_dir.glob("refs/**/patchq")]
        for directory in [*stale, git_dir / "logs"]:
            shutil.rmtree(directory, ignore_errors=True)
        (git_dir / "packed-refs").unlink(missing_ok=True)

    def _settle(self, repo: Path, mode: str) -> None:
        (repo / ".git/info/exclude").write_text(".patchq/\n.patchq.yaml\n")
        write_config(repo, f"version: 1\ntarget: main\nmode: {mode}\n")
        (repo / ".patchq/inbox").mkdir(parents=True)

    def wanted_tree(self, made: Sequence[Change]) -> str:
        """The object name of the base's tree with the changes in it, as git makes it.

        Made in a repository apart: a contender that finds its objects there need not write them.
        """
        apart = self.room / "wanted.git"
        shutil.rmtree(apart, ignore_errors=True)
        new_repository(apart, self.store, {"main": self.base}, head="main", bare=True)
        marks = fast_import(apart, _wanted(self.base, results(made)), home=self.home)
        return git(apart, "rev-parse", f"{marks[1]}^{{tree}}", home=self.home).decode().strip()

    def verify(self, repo: Path, branch: str, made: Sequence[Change], wanted: str) -> None:
        """Raise BenchError unless `branch` is the base, a commit per change, and the right tree."""
        count = git(repo, "rev-list", "--count", f"{self.base}..{branch}", home=self.home)
        tree = git(repo, "rev-parse", f"{branch}^{{tree}}", home=self.home).decode().strip()
        if int(count) != len(made) or tree != wanted:
            state = "right" if tree == wanted else "WRONG"
            raise BenchError(
                f"{repo}: {branch} has {int(count)} new commits instead of {len(made)}, "
                f"and its content is {state}"
            )

    def verify_checkout(self, repo: Path) -> None:
        """Raise BenchError unless index and work tree are those of HEAD."""
        left = git(repo, "status", "--porcelain", home=self.home).decode()
        if left:
            raise BenchError(f"{repo}: the checkout does not follow HEAD:\n{left[:500]}")


def _project(files: int) -> Iterator[bytes]:
    yield b"commit refs/heads/main\nmark :1\ncommitter %b\ndata 5\nbase\n" % WHO
    for number in range(files):
        yield b"M 100644 inline %b\n" % quoted(path_of(number))
        yield data(text_of(number).encode())
    yield b"\ncommit refs/heads/side\nmark :2\ncommitter %b\ndata 5\nside\n" % WHO
    yield b'M 100644 inline "README"\ndata 5\nside\n\n\n'


def _wanted(base: str, texts: dict[str, str]) -> Iterator[bytes]:
    yield b"commit refs/heads/wanted\nmark :1\ncommitter %b\n" % WHO
    yield b"data 7\nwanted\nfrom %b\n" % base.encode()
    for path, text in texts.items():
        yield b"M 100644 inline %b\n" % quoted(path)
        yield data(text.encode())
    yield b"\n"
