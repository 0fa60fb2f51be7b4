"""Checks of the paths that edits name.

The first check that fails decides: the path's spelling, what the configuration denies, what is
at the path in the base, and whether its bytes can be edited as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from unicodedata import is_normalized, normalize

from msgspec import Struct

from patchq.core.model.names import check_path, collision_key, look, nearest, written_out
from patchq.core.model.values import (
    Candidate,
    Entry,
    ErrorProblem,
    FileChange,
    Tree,
    WarningProblem,
)

_MOST_ALIKE = 200
_MOST_COMPARED = 20_000  # so many paths, beside the one that is wrong, are compared with it
# Parts of paths that no file has: a reader is to put something else there.
_STANDS_FOR = re.compile(r"your(?:[_-].*)?|path[_-]to(?:[_-].*)?|filename\.ext", re.IGNORECASE)
_PATHS_TO = frozenset(
    {"path/to", "pfad/zu", "pfad/zur", "pfad/zum", "chemin/vers", "ruta/a", "ruta/al", "ruta/hacia",
     "caminho/para", "percorso/del", "pad/naar", "\u043f\u0443\u0442\u044c/\u043a"}
)  # fmt: skip
_EXAMPLES = ("mathweb",)  # the directories of the examples in prompts that many models were given
_WHAT = {
    "file": "a file", "link": "a symbolic link", "tree": "a directory", "submodule": "a submodule"
}  # fmt: skip


class PlanRules(Struct, frozen=True):
    """Limits on edits; `denied` returns the reason why a path is denied."""

    levels: tuple[str, ...]
    denied: Callable[[str], str | None]
    file_bytes: int
    new_directories: bool = True
    elision: bool = True
    shrink: float = 0.5  # the share of its lines that a file written as a whole has to keep
    confidence: float = 0.7  # edits that state less are left out
    judged: Callable[[str], bool] = lambda path: True  # true if the file at a path has to parse
    # Returns why an absolute path names no file of the repository, as a clause after it.
    astray: Callable[[str], str | None] = lambda path: None


class EditRefused(Exception):
    """An edit that cannot be applied, with its problem.

    A problem without an id is of the edit itself.  A `note` is shown instead for an edit that fails
    because the edit of the problem did.
    """

    def __init__(self, problem: ErrorProblem, note: WarningProblem | None = None) -> None:
        super().__init__(problem.message)
        self.problem, self.note = problem, note


def _refusal(code: str, path: str, message: str, hint: str) -> EditRefused:
    return EditRefused(ErrorProblem(code, message, hint, path=path))


def check_spelling(path: str, rules: PlanRules, *, exists: bool) -> None:
    """Raise `EditRefused` for a path that is outside, malformed or denied."""
    if flaw := check_path(path, exists=exists):
        astray = rules.astray(path) if path.startswith("/") else None
        shown = repr(path) if is_normalized("NFC", path) else ascii(path)
        raise _refusal(flaw.code, path, f"the path {shown} {astray or flaw.reason}", _spelled(path))
    if reason := rules.denied(path):
        raise _refusal(
            "path.denied",
            path,
            f"{path} may not be changed: {reason}",
            "leave this file out; a person has to change it, or `paths.deny`, by hand",
        )


def _spelled(path: str) -> str:
    parts = (part.strip() for part in normalize("NFC", path).split("/"))
    likely = "/".join(part for part in parts if part not in ("", ".")).lstrip("-")
    if path.startswith("/") or check_path(likely):
        return "name the file relative to the repository's root, with `/` between directories"
    return f"write it as {likely}"


def existing(
    tree: Tree, path: str, rules: PlanRules, *, suggests: bool = True, link: bool = False
) -> tuple[bytes, Entry]:
    """Return the bytes and the entry of the file, or symbolic `link`, at `path`.

    Raises `EditRefused`; with `suggests` it names the file that a wrong path may mean.
    """
    check_spelling(path, rules, exists=True)
    entry = tree.entry(path)
    if entry is None:
        _check_ancestors(tree, path)
        likely = likely_path(tree, path) if suggests else None
        hint = f"did you mean {likely}?" if likely else "list the files and name one of them"
        alike = likely is not None and not set(look(path)).isdisjoint(look(likely))
        named = written_out(path) if alike else path
        raise _refusal("path.not_found", path, f"there is no file {named} in the base", hint)
    _check_kind(tree, path, entry, link=link)
    return tree.read(path), entry


def check_change(
    tree: Tree, path: str, rules: PlanRules, *, link: bool = False, leaving: Collection[str] = ()
) -> None:
    """Raise `EditRefused` unless the file at `path` may be changed or made.

    With `link`, the symbolic link there.  Paths that are `leaving` make room.
    """
    entry = tree.entry(path)
    if entry is None or (entry.kind == "tree" and leaving):
        check_new(tree, path, rules, leaving)
    else:
        check_spelling(path, rules, exists=True)
        _check_kind(tree, path, entry, link=link)


def misplaced(
    changes: Sequence[FileChange], before: Tree, rules: PlanRules
) -> Iterator[ErrorProblem]:
    """Yield a problem for each changed path on which nothing may change."""
    gone = {change.path for change in changes if change.after is None}
    gone |= {change.renamed_from for change in changes if change.renamed_from is not None}
    for change in changes:
        try:
            for path in filter(None, (change.renamed_from, change.path)):
                check_change(before, path, rules, link=change.from_link, leaving=gone)
        except EditRefused as refused:
            yield refused.problem


def too_large(sizes: Iterable[tuple[str, int]], most: int) -> ErrorProblem | None:
    """Return the problem of the first file of more than `most` bytes."""
    for path, size in sizes:
        if size > most:
            return ErrorProblem(
                "response.too_large",
                f"{path} would have {size} bytes, more than `limits.file_bytes` ({most})",
                "put less into one file",
                path=path,
            )
    return None


def _check_kind(tree: Tree, path: str, entry: Entry, *, link: bool) -> None:
    if entry.kind != ("link" if link else "file"):
        raise _refusal(
            "path.not_a_file",
            path,
            f"{path} is {_WHAT[entry.kind]}, not a {'symbolic link' if link else 'file'}",
            "edit a regular file; links go with a commit that is handed in: `patchq submit`",
        )
    if not link:
        _check_filter(tree, path)


def _check_filter(tree: Tree, path: str) -> None:
    if driver := tree.filtered(path):
        raise _refusal(
            "path.filtered",
            path,
            f"{path} has the attribute `filter={driver}`: what git stores is not its text",
            "leave this file out; a person has to change it by hand",
        )


def check_text(path: str, data: bytes, rules: PlanRules) -> None:
    """Raise `EditRefused` unless the file's bytes can be edited as text."""
    if len(data) > rules.file_bytes:
        raise _refusal(
            "file.unreadable",
            path,
            f"{path} has {len(data)} bytes, more than `limits.file_bytes` ({rules.file_bytes})",
            "leave this file out, or have the limit raised",
        )
    if b"\0" in data:
        raise _refusal(
            "file.binary", path, f"{path} is binary (it holds NUL bytes)", "leave this file out"
        )


def check_new(
    tree: Tree, path: str, rules: PlanRules, leaving: Collection[str] = ()
) -> Entry | None:
    """Return the file at a path where one may be made, if any.

    Raises `EditRefused` for any other path.  A directory of which all files are `leaving` makes
    room, and so does a file above.
    """
    check_spelling(path, rules, exists=False)
    _check_filter(tree, path)
    entry = tree.entry(path)
    if entry is not None and entry.kind == "tree" and _leaves(tree, path, leaving):
        return None
    if entry is not None:
        if entry.kind != "file":
            raise _refusal(
                "path.not_a_file",
                path,
                f"{path} is {_WHAT[entry.kind]}",
                "choose another path for the new file",
            )
        return entry
    _check_ancestors(tree, path, leaving)
    _check_collisions(tree, path)
    if placeholder := _placeholder(tree, path):
        raise _refusal(
            "path.invalid",
            path,
            f"the path {path!r} is a placeholder: {placeholder!r} is no name",
            "name the file that is meant, relative to the repository's root",
        )
    parent = path.rpartition("/")[0]
    if parent and not rules.new_directories and tree.entry(parent) is None:
        raise _refusal(
            "path.new_directory",
            path,
            f"the directory {parent} does not exist, and new ones may not be made",
            "put the file into a directory that exists",
        )
    return None


def check_twin(tree: Tree, path: str, leaving: Collection[str]) -> None:
    """Raise `EditRefused` for a new root file named like one file elsewhere.

    That file is meant as often, or quoted from.  Paths that are `leaving` make room.
    """
    if "/" in path:
        return
    twins = list(islice(tree.listing().alike(path), 2))
    if len(twins) == 1 and twins[0] not in leaving:
        raise EditRefused(
            ErrorProblem(
                "path.not_found",
                f"there is no file {path} in the base, but {twins[0]}: a path line does not tell "
                "which is meant",
                f"did you mean {twins[0]}? A new file has its path in the fence's info: "
                f"```text:{path}",
                path=path,
                candidates=(Candidate(twins[0], 1),),
            )
        )


def _placeholder(tree: Tree, path: str) -> str | None:
    """Return the placeholder in a new path; None without one, or if it exists."""
    parts = path.split("/")
    for depth, part in enumerate(parts, 1):
        here = "/".join(parts[:depth])
        if _STANDS_FOR.fullmatch(part) and tree.entry(here) is None:
            return part
        two = "/".join(parts[depth - 2 : depth]) if depth > 1 else ""
        if two.lower() in _PATHS_TO and tree.entry(here) is None:
            return two
    return parts[0] if parts[0] in _EXAMPLES and tree.entry(parts[0]) is None else None


def _leaves(tree: Tree, directory: str, leaving: Collection[str]) -> bool:
    below = (f"{directory}/{name}" for name in tree.names(directory))
    return bool(leaving) and all(
        path in leaving
        or ((entry := tree.entry(path)) and entry.kind == "tree" and _leaves(tree, path, leaving))
        for path in below
    )


def _check_ancestors(tree: Tree, path: str, leaving: Collection[str] = ()) -> None:
    for parent in _parents(path):
        entry = tree.entry(parent)
        if entry is None or (entry.kind in ("file", "link") and parent in leaving):
            return
        if entry.kind != "tree":
            raise _refusal(
                "path.not_a_file",
                path,
                f"{parent} is {_WHAT[entry.kind]}, so nothing can stand below it",
                "choose a path below a directory",
            )


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))


def _check_collisions(tree: Tree, path: str) -> None:
    """Raise `EditRefused` for a path that looks like an existing one.

    A path that differs only in case or composition would overwrite the other on some file systems;
    one that only looks like it is mistaken for it by people.
    """
    directory = ""
    for name in path.split("/"):
        names = tree.names(directory)
        if name not in names:
            looks = set(look(name))
            for other in names:
                if not looks.isdisjoint(look(other)):
                    there = f"{directory}/{other}" if directory else other
                    raise _look_alike_refusal(
                        path, path, there, "choose another name, or use the one that exists"
                    )
            return
        directory = f"{directory}/{name}" if directory else name


def _look_alike_refusal(
    path: str, name: str, other: str, hint: str, which: str = ""
) -> EditRefused:
    same = "/".join(name.split("/")[: other.count("/") + 1])
    one, two = written_out(same), written_out(other)
    if collision_key(same) == collision_key(other):
        how = f"differs from {two}{which} only in case or in how its letters are composed"
    else:
        how = f"looks like {two}{which}, and is another name"
    return _refusal("path.exists", path, f"{one} {how}", hint)


class NewPaths:
    """The paths that a batch adds, checked against each other."""

    def __init__(self) -> None:
        # By each part of its look: the path, and whether it is a file.
        self._known: dict[str, tuple[str, bool]] = {}

    def add(self, path: str) -> None:
        """Raise `EditRefused` for a path that conflicts with an earlier one."""
        for step, is_file in (*((parent, False) for parent in _parents(path)), (path, True)):
            for part in look(step):
                self._add(path, step, is_file, *self._known.setdefault(part, (step, is_file)))

    def _add(self, path: str, step: str, is_file: bool, other: str, other_is_file: bool) -> None:
        if is_file != other_is_file:
            raise _refusal(
                "path.not_a_file",
                path,
                f"the change makes {other} both a file and a directory",
                "choose another path",
            )
        if step != other:
            hint = "spell it alike, or choose another name"
            raise _look_alike_refusal(path, step, other, hint, ", which the change adds too,")


def likely_path(tree: Tree, path: str) -> str | None:
    """Return the path that a wrong one most likely means, as a suggestion only."""
    listing = tree.listing()
    names = path.split("/")
    tails = ("/".join(names[at:]) for at in range(len(names)))
    same = [*islice(listing.ending(path), _MOST_ALIKE)]
    same += [tail for tail in tails if listing.has(tail)]
    same = same or [*islice(listing.ending(names[-1]), _MOST_ALIKE)]
    if same:
        shared = set(names).intersection
        return min(same, key=lambda p: (-len(shared(p.split("/"))), len(p)))
    return nearest(path, listing.near(path, _MOST_COMPARED))
