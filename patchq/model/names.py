"""Paths and batch ids: which spellings may become names in a repository.

libgit2's own checks are weaker than git's (it stores `/abs` as `abs`, cuts at NUL, and lets
`a\\..\\.git\\config` and `.g<ZWNJ>it` pass), and a path that is harmless here may be `.git` on a
file system that folds case, drops invisible characters or keeps short names.  So a path is judged
by its text alone, for every system that a clone may end up on, before libgit2 sees it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

REQUEST = ".request.yaml"
"""How the names of requests end."""
MAX_PATH_BYTES = 1024
MAX_COMPONENT_BYTES = 255
MAX_DEPTH = 40
MAX_ID_BYTES = 100

_FORBIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_FORBIDDEN_CHARACTERS = frozenset('<>"|?*')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])")
_DRIVE = re.compile(r"[A-Za-z]:")
_HOME = re.compile(r"~(?:[^/]*/|\Z)")
_SHORT_GIT = re.compile(r"git~[0-9]+")
# The short names that NTFS may give to git's own files, the hashed ones included.
_SHORT_NAMES = (
    (re.compile(r"(?:gitmod|gi7eba)~[0-9]+"), ".gitmodules"),
    (re.compile(r"(?:gitatt|gi7d29)~[0-9]+"), ".gitattributes"),
    (re.compile(r"(?:gitign|gi250a)~[0-9]+"), ".gitignore"),
    (re.compile(r"(?:mailma|maba30)~[0-9]+"), ".mailmap"),
)


@dataclass(frozen=True, slots=True)
class PathFlaw:
    """Why a path cannot be used; `reason` is a clause that follows the path in a sentence."""

    code: Literal["path.invalid", "path.outside"]
    reason: str


def check_path(path: str, *, exists: bool = False) -> PathFlaw | None:
    """What keeps the path from naming a file of the repository, or None.

    A path that a batch adds must be safe on every system.  One that `exists` in the tree needs
    only to be inside of it and outside of every spelling of `.git`.
    """
    return _outside(path, exists) or _malformed(path) or (None if exists else _unportable(path))


def name_key(component: str) -> str:
    """What a component is to a file system that folds case, forms and invisible characters.

    Git's own files come out under their real names, short names included.
    """
    folded = component.lower() if component.isascii() else _folded(component)
    key = folded.partition(":")[0].rstrip(". ")
    return next((name for short, name in _SHORT_NAMES if short.fullmatch(key)), key)


def _folded(component: str) -> str:
    visible = "".join(c for c in component if unicodedata.category(c) != "Cf")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    # Dotless and dotted i are letters of their own to Unicode, and `i` to some upper-case tables.
    return folded.replace("\u0131", "i").replace("\u0307", "")


def spells_git(path: str) -> bool:
    """Whether a component of the path is `.git` somewhere; backslashes separate, too."""
    # A compatibility form may fold to a separator, so the split comes after the folding.
    folded = unicodedata.normalize("NFKC", path)
    keys = (name_key(component) for component in re.split(r"[/\\]", folded))
    return any(key == ".git" or _SHORT_GIT.fullmatch(key) is not None for key in keys)


def collision_key(path: str) -> str:
    """Two paths with the same key cannot stand side by side on a system that folds case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that a mistyped word most likely means, or None; a suggestion, nothing more."""
    from rapidfuzz import fuzz, process  # takes long to load, and suggestions are rare

    found = process.extractOne(word.lower(), list(choices), scorer=fuzz.ratio, score_cutoff=60)
    return found[0] if found else None


def batch_id(text: str) -> str:
    """A batch id from any text: part of a ref, of a file name and of a report's name.

    ASCII letters, digits, `.`, `_` and `-`, at most 100 of them.  It is stable under repetition.
    A text of which too little remains is named by its hash, so that no two of those collide.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text)
    while name != (clean := _clean_id(name)):
        name = clean
    if not re.search(r"[A-Za-z0-9]", name):
        return nameless_id(text)
    return name


def nameless_id(text: str) -> str:
    """An id that tells a text from others and repeats nothing of it."""
    return "batch-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def response_name(name: str) -> str:
    """The name of the response that a file is or, for a request, asks for."""
    return name.removesuffix(REQUEST) + ".md" if name.endswith(REQUEST) else name


def numbered_id(id: str, number: int) -> str:
    """`<id>-<number>`, with the id cut so that the whole stays within the limit."""
    tail = f"-{number}"
    return id[: MAX_ID_BYTES - len(tail)].rstrip(".-_") + tail


def _clean_id(name: str) -> str:
    name = re.sub(r"\.{2,}", ".", name)
    # git refuses refs that end in `.lock`; `<id>.report.json` is the name of another file.
    name = re.sub(r"\.(lock|report)(?=\.|$)", r"-\1", name, flags=re.IGNORECASE)
    return name[:MAX_ID_BYTES].strip(".-")


def _outside(path: str, exists: bool) -> PathFlaw | None:
    reason = None
    if path.startswith(("/", "\\")):
        reason = "is absolute"
    elif _DRIVE.match(path) and not exists:
        reason = "names a drive"
    elif _HOME.match(path) and not exists:
        reason = "begins in a home directory"
    elif ".." in re.split(r"[/\\]", path):
        reason = "climbs with `..`"
    if reason is None:
        return None
    return PathFlaw("path.outside", f"{reason}; paths are relative to the repository's root")


def _malformed(path: str) -> PathFlaw | None:
    """What no path may be, whether it exists or not."""
    if not path:
        return _invalid("is empty")
    if "\0" in path:
        return _invalid("holds a NUL")
    if any(unicodedata.category(c) == "Cs" for c in path):
        return _invalid("is not UTF-8")
    for component in path.split("/"):
        if component in ("", "."):
            return _invalid("has an empty component" if not component else "has a `.` component")
    if spells_git(path):
        return _invalid("has a component that spells `.git`, which git keeps for itself")
    return None


def _unportable(path: str) -> PathFlaw | None:
    """What a path that a batch adds may not be besides."""
    if unicodedata.normalize("NFC", path) != path:
        return _invalid("is not in Unicode's composed form (NFC)")
    for c in path:
        if unicodedata.category(c) in _FORBIDDEN_CATEGORIES:
            return _invalid(f"holds the character U+{ord(c):04X}, which cannot be seen")
    if "\\" in path:
        return _invalid("holds a backslash; directories are separated by `/`")
    if ":" in path:
        return _invalid("holds a colon, which Windows keeps for drives and streams")
    if len(path.encode()) > MAX_PATH_BYTES:
        return _invalid(f"is longer than {MAX_PATH_BYTES} bytes")
    components = path.split("/")
    if len(components) > MAX_DEPTH:
        return _invalid(f"is deeper than {MAX_DEPTH} directories")
    return next((flaw for flaw in map(_unportable_component, components) if flaw), None)


def _unportable_component(component: str) -> PathFlaw | None:
    if len(component.encode()) > MAX_COMPONENT_BYTES:
        return _invalid(f"has a component of more than {MAX_COMPONENT_BYTES} bytes")
    if component.endswith((".", " ")):
        return _invalid("has a component that ends in a dot or a blank, which Windows drops")
    if component != component.strip():
        return _invalid("has a component with a blank at its edge, which nobody sees")
    if found := _FORBIDDEN_CHARACTERS.intersection(component):
        return _invalid(f"holds `{min(found)}`, which Windows does not allow")
    stem = unicodedata.normalize("NFKC", component).casefold().partition(".")[0].rstrip(" ")
    if _RESERVED.fullmatch(stem):
        return _invalid("has a component that names a device on Windows")
    return None


def _invalid(reason: str) -> PathFlaw:
    return PathFlaw("path.invalid", reason)
