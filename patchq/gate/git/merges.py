"""Git's own three-way merge of two trees, without a work tree.

Git's command line merges by ORT; libgit2's older algorithm finds fewer renames.

The difference of two texts is by git's own algorithm, too, so that what is called touched here is
what git's merge takes for touched; and so are renames.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2
from msgspec import Struct
from msgspec.structs import replace
from pygit2.enums import DeltaStatus, DiffFind, DiffOption, ObjectType

from patchq.core.model.values import FileChange, LineHunk
from patchq.gate.git.command import Git, alternate, failure, fault, plain_environment
from patchq.gate.git.object_buffer import write_loose
from patchq.gate.git.objects import Leaf, as_changes
from patchq.gate.git.repository import Repository

_SECONDS = 60.0
_KIND = re.compile(r"CONFLICT \([^)]*\)")
_CONTENT = "CONFLICT (contents)"
_ALIKE = 50  # the least share of a renamed file that it keeps, in percent, as git has it


class Merged(Struct, frozen=True):
    """A merge's tree (hex), or None for conflicts.

    `beyond_lines`: some conflicts are about more than the lines of one file, such as a rename, a
    deletion or a directory.
    """

    tree: str | None
    beyond_lines: bool = False


def merge(repo: Repository, base: str, ours: str, theirs: str) -> Merged:
    """Merge the trees `ours` and `theirs`, which come from the tree `base`.

    The three are ids in hex.  It is done in a directory of its own, with the objects in memory that
    are needed."""
    with TemporaryDirectory(prefix="patchq-merge-") as name:
        objects = Path(name)
        try:
            write_loose(objects, repo.buffer.needed([ours, theirs]).values())
            root = _commit(objects, base)
            sides = [_commit(objects, tree, root) for tree in (ours, theirs)]
        except (OSError, pygit2.GitError) as error:
            raise fault("cannot merge", error) from None
        environment = plain_environment(
            GIT_DIR=str(repo.commondir),
            GIT_OBJECT_DIRECTORY=name,
            GIT_ALTERNATE_OBJECT_DIRECTORIES=alternate(repo.commondir / "objects"),
        )
        git = Git(environment, directory=objects, seconds=_SECONDS)
        done = git.run("merge-tree", "--write-tree", "--messages", "-z", *sides)
        if done.code not in (0, 1):
            raise failure("cannot merge", done.complaint, objects)
    if done.code == 0:
        return Merged(done.text[:40])
    messages = done.text.split("\0")
    return Merged(None, any(_KIND.fullmatch(text) and text != _CONTENT for text in messages))


def _commit(objects: Path, tree: str, *parents: str) -> str:
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"{role} patchq <patchq@localhost> 0 +0000" for role in ("author", "committer")]
    [commit] = write_loose(objects, [(ObjectType.COMMIT, "\n".join([*lines, "", ""]).encode())])
    return commit


def merged_files(
    repo: Repository, trees: tuple[str, str, str], result: str, paths: Collection[str]
) -> tuple[tuple[FileChange, ...], frozenset[str]]:
    """Return the paths' merged changes in the tree `result`, and those in conflict.

    `trees` are the ids of the base and of both sides; a path in conflict is the second side's.
    """
    last = repo.tree(result)
    with repo.buffer.tentative():
        index = repo.raw_repository.merge_trees(*trees)
        conflicts = frozenset(
            side.path for sides in index.conflicts or () for side in sides if side is not None
        )
        found: dict[str, tuple[Leaf | None, Leaf | None]] = {}
        for path in paths:
            before = repo.leaf(trees[2], path) if path in conflicts else _merged(index, path)
            after = repo.leaf(last.root, path)
            if before != after:
                found[path] = before, after
        return tuple(as_changes(found, repo.raw)), conflicts & found.keys()


def _merged(index: pygit2.Index, path: str) -> Leaf | None:
    if path not in index:
        return None
    return int(index[path].mode), str(index[path].id)


def line_hunks(old: bytes, new: bytes) -> list[LineHunk]:
    """Return the changed runs of lines, in order.

    Each is (first, end) of `old`, then of `new`, 0-based and half-open.
    """
    flags = DiffOption.FORCE_TEXT | DiffOption.INDENT_HEURISTIC
    patch = pygit2.Patch.create_from(old, new, context_lines=0, flag=flags)
    return [
        (*_range(hunk.old_start, hunk.old_lines), *_range(hunk.new_start, hunk.new_lines))
        for hunk in patch.hunks
    ]


def fork_of(repo: Repository, one: str, other: str) -> str | None:
    try:
        found = repo.raw_repository.merge_base(one, other)
    except (KeyError, ValueError, pygit2.GitError):
        return None
    return str(found) if found else None


def _range(start: int, count: int) -> tuple[int, int]:
    """Return the range as a slice.

    Git names the line before an empty range.
    """
    first = start - 1 if count else start
    return first, first + count


def changes_with_renames(repo: Repository, old: str, new: str) -> tuple[FileChange, ...]:
    """Return the changes between two commits, with each rename that git finds as one.

    A renamed link stays a deletion and an addition.
    """
    changes = repo.file_changes(old, new)
    files = [change for change in changes if not change.link]
    gone = {change.path: change for change in files if change.after is None}
    come = {change.path: change for change in files if change.before is None}
    if not (gone and come):
        return changes
    before, after = (repo.raw_repository[repo.tree(commit).root] for commit in (old, new))
    assert isinstance(before, pygit2.Tree)
    assert isinstance(after, pygit2.Tree)
    diff = before.diff_to_tree(after)
    diff.find_similar(flags=DiffFind.FIND_RENAMES, rename_threshold=_ALIKE)
    pairs = {
        delta.new_file.path: delta.old_file.path
        for delta in diff.deltas
        if delta.status == DeltaStatus.RENAMED
        and delta.new_file.path in come
        and delta.old_file.path in gone
    }
    moved = {path: _moved(gone[source], come[path]) for path, source in pairs.items()}
    return tuple(
        moved.get(change.path, change) for change in changes if change.path not in pairs.values()
    )


def _moved(gone: FileChange, come: FileChange) -> FileChange:
    was = None if gone.executable == come.executable else gone.executable
    return replace(come, before=gone.before, renamed_from=gone.path, was_executable=was)
