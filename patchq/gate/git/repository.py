"""The repository: reading commits and writing new ones.  The package that imports pygit2.

A commit is made of the blobs and directories that a batch touches and of nothing else, so its cost
does not grow with the repository; an index of everything is never read.  libgit2 loses data without
an error in three ways, and each has its answer here:

* a file put where a directory is, or the reverse, silently removes the other: the finished tree
  must differ from its base by exactly the declared paths;
* an object that "exists already" is not written again, though a power cut may have left it empty:
  every object is written anew, and takes the place of a loose one;
* nothing is flushed: objects are durable only after `files.barrier`, which covers many at once.

Each object is made in memory, whatever the repository has: one that "exists already" may also be
one that no ref holds and `git repack -ad` takes away.  libgit2 would look through the packs'
directory for each of them, besides.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pygit2
from msgspec import Struct
from pygit2.enums import AttrCheck, ObjectType, SortMode

from patchq.core.model.listing import Listing
from patchq.core.model.values import Entry, EntryKind, FileChange
from patchq.gate.errors import ObjectDamaged, RepositoryFault
from patchq.gate.git.command import FSCK, fault, misconfigured, remotely
from patchq.gate.git.files import LockFile, give_back_memory
from patchq.gate.git.object_buffer import ObjectBuffer
from patchq.gate.git.objects import (
    LINK,
    SUBMODULE,
    TREE,
    Changes,
    CommitInfo,
    Identity,
    Trees,
    as_changes,
    differences,
    file_paths,
    graft,
    is_regular,
    leaves,
    make_identity,
)
from patchq.gate.git.opening import FETCH_SECONDS, Promised, open_handle, promisors
from patchq.gate.git.refs import common_directory, head_target, ref_target, ref_value, ref_values

Kind = TypeVar("Kind", pygit2.Object, pygit2.Commit)
# Gives a commit object's bytes with a signature, if one is wanted.
Sign = Callable[[bytes], bytes]

_KINDS: dict[int, EntryKind] = {TREE: "tree", LINK: "link", SUBMODULE: "submodule"}
_BY_COMMIT = AttrCheck.INDEX_ONLY | AttrCheck.NO_SYSTEM | AttrCheck.INCLUDE_COMMIT
_COMMITS = 100  # that are kept: deciding on a response asks for the same one again and again
_FIRST = 1000  # the priority of objects in memory; libgit2's own backends have 1 and 2
State = tuple[str | None, ...]


class Repository:
    """An open repository; cheap calls, no process, nothing outside of `GITDIR` is written."""

    def __init__(self, repo: pygit2.Repository) -> None:
        self.raw_repository = repo  # libgit2's own handle, for the other modules of this package
        self._listed: tuple[str, Listing] | None = None
        self.trees = Trees(partial(self.raw, kind=ObjectType.TREE))
        self.leaf = self.trees.leaf
        self.buffer = ObjectBuffer()  # the objects that no file has yet
        self.staged: dict[str, LockFile] = {}  # written values for refs; see `refs.staged`
        # A directory of objects that are read as if they were the repository's own.
        self.borrowed: Path | None = None
        # An attribute lookup through a handle with a git directory also reads the index.
        self._bare_memory = pygit2.Repository()
        self.workdir = Path(repo.workdir) if repo.workdir else None
        self.gitdir = Path(os.path.realpath(repo.path))
        self.commondir = common_directory(self.gitdir)
        remotes = promisors(repo)
        git = remotely(self.commondir, self.setting("core.sshCommand"), FETCH_SECONDS)
        self.promised = Promised(self.trees, self.has, remotes, git)
        users = f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/git/attributes"
        users = self.setting("core.attributesFile") or users
        self._attribute_files = (f"{self.commondir}/info/attributes", os.path.expanduser(users))
        self.renew()

    def renew(self) -> None:
        """Forget all objects and packs that were read.

        Libgit2 searches each pack that it has ever seen, so a long-lived process calls this now and
        then.
        """
        store = pygit2.Odb(str(self.commondir / "objects"))
        store.add_backend(self.buffer.backend(), _FIRST)
        if self.borrowed is not None:
            store.add_disk_alternate(str(self.borrowed))
        self.trees.clear()
        self._commit = lru_cache(_COMMITS)(partial(self._object, kind=pygit2.Commit))
        for handle in (self.raw_repository, self._bare_memory):
            handle.free()
            handle.set_odb(store)
        give_back_memory()

    @classmethod
    def open(cls, path: Path) -> Repository:
        """Return the repository that `path` is in; `errors.UsageError` if it is in none."""
        return cls(open_handle(path))

    def identity(self) -> Identity | None:
        """Return the person who acts now, or None.

        It is that of `GIT_COMMITTER_NAME` and `_EMAIL`, else of the configuration.
        """
        name, email = (
            os.environ.get(f"GIT_COMMITTER_{field.upper()}")
            or self.setting(f"committer.{field}")
            or self.setting(f"user.{field}")
            for field in ("name", "email")
        )
        now = time.localtime()
        if not name or not email:
            return None
        return make_identity(name, email, int(time.mktime(now)), now.tm_gmtoff // 60)

    def setting(self, key: str) -> str | None:
        """Return a value of git's configuration, unconverted, by its dotted key."""
        try:
            return self.raw_repository.config[key]
        except KeyError:
            return None
        except pygit2.GitError as error:
            raise misconfigured(error) from None

    def hooks_directory(self) -> Path:
        named = self.setting("core.hooksPath")
        if not named:
            return self.commondir / "hooks"
        return Path(os.path.normpath((self.workdir or self.gitdir) / Path(named).expanduser()))

    def ref_target(self, fullname: str) -> str | None:
        return ref_target(self.commondir, fullname)

    def has_ref(self, *fullnames: str) -> bool:
        return any(ref_value(self.commondir, name) for name in fullnames)

    def is_symbolic(self, fullname: str) -> bool:
        return (ref_value(self.commondir, fullname) or "").startswith("ref:")

    def head_branch(self) -> str | None:
        """Return the short name of the checked-out branch, or None.

        A HEAD that is detached or unborn has none.
        """
        target = head_target(self.gitdir)
        name = target.removeprefix("refs/heads/")
        return name if name != target and self.ref_target(target) else None

    def head_commit(self, gitdir: Path) -> str | None:
        """Return the commit of the HEAD in a git directory; None before the first one."""
        target = head_target(gitdir)
        named = self.ref_target(target) if target else (gitdir / "HEAD").read_text().strip()
        return named and self.resolve_commit(named)

    def branch_tip(self, name: str) -> str | None:
        """Return the commit of `refs/heads/<name>`, or None for no plain branch."""
        return self.tip(f"refs/heads/{name}")

    def tip(self, fullname: str) -> str | None:
        """Return the commit that a ref is on, or None.

        A symbolic ref, or one to another object, has none.
        """
        tip = self.ref_target(fullname)
        return tip if tip and isinstance(self._object(tip, pygit2.Object), pygit2.Commit) else None

    def refs(self, prefix: str) -> dict[str, str]:
        return ref_values(self.commondir, prefix)

    def branches(self, prefix: str) -> dict[str, str]:
        refs = self.refs(f"refs/heads/{prefix}")
        return {name.removeprefix("refs/heads/"): tip for name, tip in refs.items()}

    def resolve_commit(self, text: str) -> str | None:
        """Return the commit that a person means, or None.

        The name is an id or its first 4 digits or more, a branch, a tag, or a full ref name.  It is
        None, too, for a name of more than one.
        """
        digits = text.lower() if re.fullmatch(r"[0-9a-fA-F]{4,40}", text) else ""
        places = (
            ("",) if text.startswith("refs/") else ("refs/heads/", "refs/tags/", "refs/remotes/")
        )
        named = [] if len(digits) == 40 else [self.ref_target(place + text) for place in places]
        found = {self._peel(oid) for oid in named if oid} or {self._peel(digits)}
        return found.pop() if len(found) == 1 else None

    def _peel(self, oid: str) -> str | None:
        try:
            return str(self.raw_repository[oid].peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError):
            return None

    def tree(self, commit: str) -> CommitTree:
        return CommitTree(self, commit, str(self._commit(commit).tree_id))

    def message(self, commit: str) -> str:
        return self._commit(commit).raw_message.decode("utf-8", "replace")

    def parents(self, commit: str) -> tuple[str, ...]:
        return tuple(str(oid) for oid in self._commit(commit).parent_ids)

    def time(self, commit: str) -> int:
        return self._commit(commit).commit_time

    def is_ancestor(self, old: str, new: str) -> bool:
        raw = self.raw_repository
        try:
            return old == new or (old in raw and raw.descendant_of(new, old))
        except (KeyError, pygit2.GitError) as error:
            raise fault(f"cannot read the history of {new}", error, ObjectDamaged) from None

    def exists(self, commit: str) -> bool:
        """Return True if the commit and its tree are on disk now.

        `git gc --prune=now` may have taken them, whatever this handle remembers.
        """
        disk = pygit2.Odb(str(self.commondir / "objects"))
        there = disk.exists(pygit2.Oid(hex=commit))
        return there and disk.exists(pygit2.Oid(hex=self.tree(commit).root))

    @property
    def shallow(self) -> bool:
        """True if the clone ends before its history does."""
        return bool(self.raw_repository.is_shallow)

    def root(self, tip: str) -> str:
        """Return the commit with which the history of first parents begins."""
        [first] = deque(self._walk(tip, None, first_parents=True), maxlen=1)
        return str(first.id)

    def commits(
        self, tip: str, hide: str | None = None, limit: int | None = None
    ) -> Iterator[CommitInfo]:
        """Yield the history of `tip` without that of `hide`, children first.

        Of the whole history no more is read than is asked for: its lines are merged by their
        dates, as by `git log`, and a wrong clock may put a commit of one before its child in
        another."""
        for commit in islice(self._walk(tip, hide), limit):
            author = f"{commit.author.name} <{commit.author.email}>"
            message = commit.raw_message.decode("utf-8", "replace")
            yield CommitInfo(str(commit.id), message, author)

    def states(self, tip: str, paths: Sequence[str]) -> Iterator[tuple[str, State]]:
        """Yield the same commits of `tip`, with the ids at the paths; None: nothing."""
        for commit in self._walk(tip, None):
            try:
                yield str(commit.id), tuple(_id_at(commit.tree, path) for path in paths)
            except pygit2.GitError as error:
                raise fault(f"cannot read the files of {commit.id}", error, ObjectDamaged) from None

    def keep_blob(self, data: bytes) -> str:
        return self.buffer.keep(ObjectType.BLOB, data)

    def changes(self, old: str, new: str) -> Changes:
        return self.differences(self.tree(old).root, self.tree(new).root)

    def differences(self, old: str | None, new: str) -> Changes:
        return differences(self.trees, old, new)

    def file_changes(self, old: str, new: str) -> tuple[FileChange, ...]:
        """Return the changes of files and links between two commits.

        A rename is a deletion and a creation; submodules are left out."""
        changes = self.changes(old, new)
        self.promised.fetch(leaf[1] for side in changes.values() for leaf in side if leaf)
        return tuple(as_changes(changes, self.raw))

    def touching(self, tip: str, hide: str | None, path: str) -> Iterator[str]:
        """Yield the commits of `hide..tip` whose `path` is none of its parents', children first."""
        for commit in self._walk(tip, hide):
            there = self.leaf(str(commit.tree_id), path)
            before = [self.leaf(str(parent.tree_id), path) for parent in commit.parents] or [None]
            if there not in before:
                yield str(commit.id)

    def _walk(
        self, tip: str, hide: str | None, *, first_parents: bool = False
    ) -> Iterator[pygit2.Commit]:
        try:
            # To sort them libgit2 reads all of them before it gives the first.
            order = SortMode.TOPOLOGICAL | SortMode.TIME if hide else SortMode.NONE
            walker = self.raw_repository.walk(self._commit(tip).id, order)
            if hide:
                walker.hide(self._commit(hide).id)
            if first_parents:
                walker.simplify_first_parent()
            yield from walker
        except (KeyError, pygit2.GitError) as error:
            raise fault(f"cannot read the history of {tip}", error, ObjectDamaged) from None

    @contextmanager
    def _reading(self, oid: str) -> Iterator[None]:
        self.promised.fetch([oid])
        try:
            yield
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise fault(f"cannot read object {oid}", error, ObjectDamaged) from None

    def _object(self, oid: str, kind: type[Kind]) -> Kind:
        with self._reading(oid):
            found = self.raw_repository[oid]
        if not isinstance(found, kind):
            raise ObjectDamaged(f"{oid} is no {kind.__name__.lower()}", FSCK)
        return found

    def has(self, oid: str) -> bool:
        return self.buffer.content(oid) is not None or oid in self.raw_repository

    def raw(self, oid: str, kind: ObjectType = ObjectType.ANY) -> bytes:
        """Return an object's bytes; raise `ObjectDamaged` if it is not of the kind."""
        kept = self.buffer.content(oid)
        if kept is not None:
            return kept
        with self._reading(oid):  # no object is made of it, which takes as long for a tree
            found, data = self.raw_repository.odb.read(oid)
        if kind not in (ObjectType.ANY, found):
            raise ObjectDamaged(f"{oid} is no {kind.name.lower()}", FSCK)
        return data

    def size(self, oid: str) -> int:
        with self._reading(oid):
            return int(self.raw_repository.odb.read_header(oid)[1])

    def listing(self, root: str) -> Listing:
        """Return the files of a tree.

        The last listing is kept, unless some of it could not be read, and the next is made of it by
        what differs.
        """
        last, made = self._listed, None
        if last and last[0] == root:
            return last[1]
        if last:
            with suppress(ObjectDamaged):
                changed = differences(self.trees, last[0], root)
                gone = {path for path, (was, _) in changed.items() if was}
                come = {path for path, (_, now) in changed.items() if now and now[0] not in _KINDS}
                made = last[1].followed(gone, come)
        listing = made or Listing.of(file_paths(self.raw, root))
        self._listed = None if listing.damaged else (root, listing)
        return listing

    def filter_of(self, commit: str | None, path: str) -> str | None:
        """Return the value of the path's `filter` attribute, or None.

        It is that of the commit, if any, else of `info/attributes` and the user's own file.  Where
        there are such files, which is rare, the attributes of the index count as well.
        """
        bare = self._bare_memory
        try:
            value = bare.get_attr(path, "filter", _BY_COMMIT, commit) if commit else None
        except (KeyError, pygit2.GitError) as error:
            raise fault(f"cannot read the attributes of {path}", error, ObjectDamaged) from None
        if not isinstance(value, str) and any(map(os.path.exists, self._attribute_files)):
            value = self.raw_repository.get_attr(path, "filter", AttrCheck.INDEX_ONLY)
        return value if isinstance(value, str) else None

    def write_objects(self, flush: Callable[[], None] = lambda: None) -> None:
        """Put the objects of every `write_commit` so far into files.

        `flush` makes them, and whatever else it covers, durable before they get their names.
        """
        try:
            self.buffer.write_to(self.commondir / "objects", flush)
        except (OSError, pygit2.GitError) as error:
            raise fault("cannot write objects", error) from None

    def close(self) -> None:
        """Nothing more is written: leave nothing of this process in the git directory."""
        self.buffer.let_go()

    def write_commit(
        self,
        parent: str | None,
        changes: Sequence[FileChange],
        message: str,
        author: Identity,
        committer: Identity,
        sign: Sign = lambda commit: commit,
    ) -> tuple[str, str]:
        """Make a commit in memory, and return its id and its tree's.

        Without a parent it is the first of a history.  Its objects stay in memory until
        `write_objects`.  Raises `RepositoryFault` if the tree would differ from the parent's by
        anything but `changes`, and what `sign` raises.
        """
        root = self.write_tree(parent, changes)
        if "\0" in message:
            raise RepositoryFault("a commit message cannot hold a NUL byte")
        parents: list[str | pygit2.Oid] = [parent] if parent else []
        by, via = (pygit2.Signature(p.name, p.email, p.when, p.offset) for p in (author, committer))
        try:
            tree = pygit2.Oid(hex=root)
            text = self.raw_repository.create_commit_string(by, via, message, tree, parents)
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise fault("cannot make a commit", error) from None
        return self.buffer.keep(ObjectType.COMMIT, sign(str(text).encode())), root

    def amend(
        self, commit: str, parent: str, changes: Sequence[FileChange], message: str, sign: Sign
    ) -> tuple[str, str]:
        """Make a commit again on `parent`, and return its id and its tree's.

        Its people and times stay; it has a signature of its own.
        """
        old = self._commit(commit)
        author, committer = (
            Identity(who.name, who.email, who.time, who.offset)
            for who in (old.author, old.committer)
        )
        return self.write_commit(parent, changes, message, author, committer, sign)

    def write_tree(self, parent: str | None, changes: Sequence[FileChange]) -> str:
        """Return the tree that `write_commit` would make with the changes."""
        new_tree = partial(self.buffer.keep, ObjectType.TREE)
        base = self.tree(parent).root if parent else new_tree(b"")
        look_up = partial(self.leaf, base)
        declared = leaves(look_up, changes, partial(self.buffer.keep, ObjectType.BLOB))
        places = {path.encode("utf-8", "surrogateescape"): leaf for path, leaf in declared.items()}
        root = graft(self.trees, new_tree, base, places) or new_tree(b"")
        difference = differences(self.trees, base, root)
        after = {path: leaf for path, (_, leaf) in difference.items()}
        want = {path: leaf for path, leaf in declared.items() if leaf != look_up(path)}
        if after != want:
            lost = sorted({path for path, _ in after.items() ^ want.items()})
            raise RepositoryFault(f"the changes contradict each other: {', '.join(lost)}")
        return root


class CommitTree(Struct, frozen=True):
    """A `model.Tree` that reads only the directories on the way to a path."""

    repo: Repository
    commit: str
    root: str

    def entry(self, path: str) -> Entry | None:
        leaf = self.repo.leaf(self.root, path)
        if leaf is None:
            return None
        mode, oid = leaf
        return Entry(_KINDS.get(mode, "file"), oid, is_regular(mode) and mode & 0o111 > 0)

    def read(self, path: str) -> bytes:
        leaf = self.repo.leaf(self.root, path)
        if leaf is None:
            raise KeyError(path)
        return self.repo.raw(leaf[1])

    def text(self, path: str) -> bytes | None:
        """Return the bytes of a regular file; None where there is none."""
        leaf = self.repo.leaf(self.root, path)
        return self.repo.raw(leaf[1]) if leaf and is_regular(leaf[0]) else None

    def names(self, directory: str) -> tuple[str, ...]:
        leaf = self.repo.leaf(self.root, directory) if directory else (TREE, self.root)
        return self.repo.trees.names(leaf[1]) if leaf and leaf[0] == TREE else ()

    def paths(self) -> Iterator[str]:
        return file_paths(self.repo.raw, self.root)

    def listing(self) -> Listing:
        return self.repo.listing(self.root)

    def filtered(self, path: str) -> str | None:
        """Return the `filter` attribute by this commit's `.gitattributes` and those outside it."""
        above = [""] + [path[: i + 1] for i, char in enumerate(path) if char == "/"]
        places = [f"{at}.gitattributes" for at in above]
        inside = any(self.repo.leaf(self.root, place) for place in places)
        if inside:
            self.repo.promised.fetch_files(self.root, places)
        return self.repo.filter_of(self.commit if inside else None, path)


def _id_at(tree: pygit2.Tree, path: str) -> str | None:
    try:  # not by `Trees`: libgit2 keeps more of them, and a history has many
        return str(tree[path].id)
    except (KeyError, TypeError):  # no such path, or none that a file can have
        return None
