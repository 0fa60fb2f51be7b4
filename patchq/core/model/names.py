# ruff: noqa: RUF001  (some letters of this file look like others)
"""Spellings of paths and batch ids that may become names in a repository.

libgit2's own checks are weaker than git's (it stores `/abs` as `abs`, cuts at NUL, and lets
`a\\..\\.git\\config` and `.g<ZWNJ>it` pass), and a path that is harmless here may be `.git` on a
file system that folds case, drops invisible characters or keeps short names.  So a path is judged
by its text alone, for every system that a clone may end up on, before libgit2 sees it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from msgspec import Struct

REQUEST = ".request.yaml"  # how the names of requests end
COMMITS, PUSH = ".commits", ".push"  # and of responses that patchq makes of commits
MAX_PATH_BYTES = 1024
MAX_COMPONENT_BYTES = 255
MAX_DEPTH = 40
MAX_ID_BYTES = 100

_FORBIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_NO_NAMES = frozenset({"", "."})
_FORBIDDEN_CHARACTERS = frozenset('<>"|?*')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])")
_NOT_IN_IDS, _IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+"), re.compile(r"[A-Za-z0-9]")
_DOTS, _TAKEN_ENDING = re.compile(r"\.{2,}"), re.compile(r"\.(lock|report)(?=\.|$)", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_MOST_BEGUN = 3  # names that are shown for their beginning
_HOME = re.compile(r"~(?:[^/]*/|\Z)")
_SHORT_GIT = re.compile(r"git~[0-9]+")
# The short names that NTFS may give to git's own files, the hashed ones included.
_SHORT_NAMES = (
    (re.compile(r"(?:gitmod|gi7eba)~[0-9]+"), ".gitmodules"),
    (re.compile(r"(?:gitatt|gi7d29)~[0-9]+"), ".gitattributes"),
    (re.compile(r"(?:gitign|gi250a)~[0-9]+"), ".gitignore"),
    (re.compile(r"(?:mailma|maba30)~[0-9]+"), ".mailmap"),
)


class PathFlaw(Struct, frozen=True):
    """Reason that a path cannot be used.

    `reason` is a clause that follows the path in a sentence.
    """

    code: Literal["path.invalid", "path.outside"]
    reason: str


def check_path(path: str, *, exists: bool = False) -> PathFlaw | None:
    """Return why the path can name no file of the repository, or None.

    A path that a batch adds must be safe on every system.  One that `exists` in the tree needs
    only to be inside of it and outside of every spelling of `.git`.
    """
    if reason := _outside(path, exists):
        return PathFlaw("path.outside", f"{reason}; paths are relative to the repository's root")
    reason = _malformed(path) or (None if exists else _unportable(path))
    return PathFlaw("path.invalid", reason) if reason else None


def name_key(component: str) -> str:
    """Return a component as a case-folding file system compares it.

    Unicode forms and invisible characters are folded too.  Git's own files come out under their
    real names, short names included.
    """
    folded = component.lower() if component.isascii() else _folded(component)
    key = folded.partition(":")[0].rstrip(". ")
    if "~" not in key:  # each short name has it
        return key
    return next((name for short, name in _SHORT_NAMES if short.fullmatch(key)), key)


def _folded(component: str) -> str:
    visible = "".join(c for c in component if unicodedata.category(c) != "Cf")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    # Dotless and dotted i are letters of their own to Unicode, and `i` to some upper-case tables.
    return folded.replace("\u0131", "i").replace("\u0307", "")


def spells_git(path: str) -> bool:
    """Return whether a component of the path is `.git` on any system.

    Backslashes separate components, too.
    """
    if path.isascii() and "git" not in path.lower():  # ASCII folds to nothing else
        return False
    # A compatibility form may fold to a separator, so the split comes after the folding.
    folded = unicodedata.normalize("NFKC", path)
    keys = (name_key(component) for component in re.split(r"[/\\]", folded))
    return any(key == ".git" or _SHORT_GIT.fullmatch(key) is not None for key in keys)


def collision_key(path: str) -> str:
    """Return the key under which paths collide on a case-folding file system."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that a mistyped word most likely means, or None."""
    from rapidfuzz import fuzz, process  # takes long to load, and suggestions are rare

    found = process.extractOne(word.lower(), list(choices), scorer=fuzz.ratio, score_cutoff=60)
    return found[0] if found else None


def alike(word: str, names: Iterable[str]) -> list[str]:
    """Return the names nearest to a mistyped one, else some that begin with it.

    A swap of neighbours is one step.
    """
    from rapidfuzz.distance import OSA  # takes long to load, and suggestions are rare

    steps = {name: OSA.distance(word.lower(), name.lower()) for name in names}
    least = min(steps.values(), default=0)
    near = [name for name in steps if steps[name] == least <= max(1, 0.4 * len(word))]
    return near or [name for name in steps if name.startswith(word)][:_MOST_BEGUN]


def suggestion(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """Return the question whether a name near to the word is meant, else `otherwise`."""
    near = " or ".join(f"`{name}`" for name in alike(word, names))
    return f"did you mean {near}?" if near else otherwise


def batch_id(text: str) -> str:
    """Return a batch id made from any text.

    It is part of a ref, of a file name and of a report's name.
    ASCII letters, digits, `.`, `_` and `-`, at most 100 of them.  It is stable under repetition.
    A text of which too little remains is named by its hash, so that no two of those collide.
    """
    name = _NOT_IN_IDS.sub("-", text)
    while name != (clean := _clean_id(name)):
        name = clean
    return name if _IN_NAMES.search(name) else nameless_id(text)


def nameless_id(text: str) -> str:
    """Return an id made of the hash of a text."""
    return "batch-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def response_name(name: str) -> str:
    """Return the name of the response for a response or request file."""
    return name.removesuffix(REQUEST) + ".md" if name.endswith(REQUEST) else name


def _clean_id(name: str) -> str:
    name = _DOTS.sub(".", name)
    # git refuses refs that end in `.lock`; `<id>.report.json` is the name of another file.
    name = _TAKEN_ENDING.sub(r"-\1", name)
    return name[:MAX_ID_BYTES].strip(".-")


def _first(reasons: Mapping[str, bool]) -> str | None:
    for reason, holds in reasons.items():
        if holds:
            return reason
    return None


def _outside(path: str, exists: bool) -> str | None:
    return _first(
        {
            "is absolute": path.startswith(("/", "\\")),
            "names a drive": not exists and _DRIVE.match(path) is not None,
            "begins in a home directory": not exists and _HOME.match(path) is not None,
            "climbs with `..`": ".." in path and ".." in re.split(r"[/\\]", path),
        }
    )


def _malformed(path: str) -> str | None:
    odd = next(filter(_NO_NAMES.__contains__, path.split("/")), None)
    return _first(
        {
            "is empty": not path,
            "holds a NUL": "\0" in path,
            "is not UTF-8": not path.isascii()
            and any(unicodedata.category(c) == "Cs" for c in path),
            "has an empty component": odd == "",
            "has a `.` component": odd == ".",
            "has a component that spells `.git`, which git keeps for itself": spells_git(path),
        }
    )


def _unportable(path: str) -> str | None:
    components = path.split("/")
    unseen = (c for c in path if unicodedata.category(c) in _FORBIDDEN_CATEGORIES)
    code = next((f"U+{ord(c):04X}" for c in unseen), "")
    reason = _first(
        {
            "is not in Unicode's composed form (NFC)": unicodedata.normalize("NFC", path) != path,
            f"holds the character {code}, which cannot be seen": bool(code),
            "begins with `-`, so that commands take it for an option": path.startswith("-"),
            "holds a backslash; directories are separated by `/`": "\\" in path,
            "holds a colon, which Windows keeps for drives and streams": ":" in path,
            f"is longer than {MAX_PATH_BYTES} bytes": len(path.encode()) > MAX_PATH_BYTES,
            f"is deeper than {MAX_DEPTH} directories": len(components) > MAX_DEPTH,
        }
    )
    return reason or next(filter(None, map(_unportable_component, components)), None)


def _unportable_component(component: str) -> str | None:
    size = len(component.encode())
    found = min(_FORBIDDEN_CHARACTERS.intersection(component), default="")
    stem = unicodedata.normalize("NFKC", component).casefold().partition(".")[0].rstrip(" ")
    return _first(
        {
            f"has a component of more than {MAX_COMPONENT_BYTES} bytes": size > MAX_COMPONENT_BYTES,
            "has a component that ends in a dot or a blank, which Windows drops": (
                component.endswith((".", " "))
            ),
            "has a component with a blank at its edge, which cannot be seen": (
                component != component.strip()
            ),
            f"holds `{found}`, which Windows does not allow": bool(found),
            "has a component that names a device on Windows": _RESERVED.fullmatch(stem) is not None,
        }
    )


# ---------------------------------------------------------------- names that look alike

# People take names for one another that differ by case, by width, by letters of another alphabet,
# or by characters that take no place.  Who reads a list of files sees one name twice, or one file
# where there are two, and a program that looks for the one may find the other.  The letters are
# those of Unicode's confusables (UTS 39) whose shape is one of ASCII's, beyond what NFKC folds,
# of the alphabets that fonts commonly have.  Within ASCII only a capital I and an l, a 0 and an O
# are taken for one another: `1` and `l`, `rn` and `m` tell real files apart.
_SHAPES = (
    ("ЗӠАВСЕԌНЈКМОРЅТѴԜХУҮаЬсԁеҽһіꙇӏјІӀорԛѕѵѡԝхуү",
     "33ABCEGHJKMOPSTVWXYYabcdeehiiijllopqsvwwxyy"),
    ("ΑΒΕϜΗͿΚΜϺΝΟΡΤΧΥΖαιϳΙοσρᴦυνγ",
     "ABEFHJKMMNOPTXYZaijloopruvy"),
    ("ՕՏՍքցհոռօգզսա",
     "OSUfghnnoqquw"),
    ("ꝚƧꞫȜƷꝪƼȣȢꝮꞴꞘꞲƦꞳɑƄᴄꬲꬵꞙẝɡᶃƍıɪɩƖǀᴏᴑꬽꭇꭈꜱƽꞟᴜꭎꭒʋᴠɯᴡɣᶌʏỿꭚᴢ",
     "2233335889BFJRXabcefffgggiiillooorrssuuuuuvwwyyyyyz"),
    ("ᎪᏴᏟᎠᎬᏀᏳᎻᎫᏦᏞᎷᏢᎡᏒᏕᏚᎢᏙᎳᏔᎩᎽᏃᏏꮯᏧᏂꭵᎥꮁꮪꮩꮃꮓ",
     "ABCDEGGHJKLMPRRSSTVWWYYZbcdhiirsvwz"),
    ("ꓮꓐꓚꓓꓰꓝꓖꓧꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜꓒꓲ",
     "ABCDEFGHJKLMNOPRSTUVWXYZdl"),
    ("ϨⳌⳒⳊⲤⲎⲔⳐⲘⲚⲞⲢⲦⲬⲨⲥⲒⲟⲣⲅ",
     "2369CHKLMNOPTXYclopr"),
    ("ჿყᗅᗷᗞᗪᖴᕼᒍᒪᗰᑭᖇᑌᐯ᙭ᑲᑯⵔⵕⵝⵏ",
     "oyABDDFHJLMPRUVXbdOQXl"),
    ("՝‘’‛′‵՚ʹˈˊˋ˴ʻʽʼʾꞌ‚ꓹ‐‒–⁃˗−Ⲻꓸ∼",
     "''''''''''''''''',,-------.~"),
)  # fmt: skip
_LIKE = {ord(a): b for those, these in _SHAPES for a, b in zip(those, these, strict=True)}
_WITHIN_ASCII = str.maketrans("I0", "lO")
# What takes no place in a line, beside the category Cf.
_NO_PLACE = (
    frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
    | {*map(chr, range(0x180B, 0x1810))}
    | {*map(chr, range(0xFE00, 0xFE10))}
    | {*map(chr, range(0xE0100, 0xE01F0))}
)


@lru_cache(maxsize=1 << 15)
def look(name: str) -> tuple[str, str, str]:
    """Return the shapes of a name or path.

    Two names are twins if any of their shapes is the same.
    """
    key = collision_key(name)
    plain = name if name.isascii() else _plain(name)
    return f"=:{key}", f"~:{collision_key(plain)}", f"-:{plain.translate(_WITHIN_ASCII)}"


def _plain(name: str) -> str:
    shown = (c for c in name if unicodedata.category(c) != "Cf" and c not in _NO_PLACE)
    return unicodedata.normalize("NFKC", "".join(shown)).translate(_LIKE)


def written_out(name: str) -> str:
    r"""Return a name with its letters beyond ASCII as in `\u0430`."""
    return name if name.isascii() else ascii(name)[1:-1]


# ---------------------------------------------------------------- secrets

# Patterns for one name of a path; the last that matches decides, and `!` takes a name out.
SECRET_NAMES = (
    ".env", ".env.*", "!.env.example", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".pypirc", "credentials*.json",
)  # fmt: skip


def deny_secrets(path: str) -> str | None:
    """Return the reason why a path that names a secret is denied, or None."""
    for name in path.casefold().split("/"):
        matches = (p for p in reversed(SECRET_NAMES) if fnmatchcase(name, p.removeprefix("!")))
        pattern = next(matches, "!")
        if not pattern.startswith("!"):
            return f"files named `{pattern}` hold secrets"
    return None
