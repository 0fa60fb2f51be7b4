"""The paths in a diff's headers: quoted as git quotes them, with prefixes and dates, or not."""

from __future__ import annotations

import re

from patchq.formats.marks.paths import Known, as_meant, is_path, undotted

NOWHERE = "/dev/null"

_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r",
}  # fmt: skip
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_DATE = re.compile(r"[ \t]\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*", re.DOTALL)
_PREFIX = re.compile(r"[abciow12]/(?=.)", re.DOTALL)


def unquoted(text: str) -> str | None:
    """The text without git's quotes and escapes; None if they cannot be read."""
    match = _QUOTED.fullmatch(text)
    if match is None:
        return None if text.startswith('"') else text
    data = _ESCAPE.sub(_character, match[1].encode("utf-8", "surrogatepass"))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _character(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255]) if code.isdigit() else _LETTERS.get(code, code)


def side(line: str) -> str | None:
    """The path of a `--- ` or `+++ ` line, with its prefix; None if it has none."""
    text = line[4:].partition("\t")[0].strip()
    if not text.startswith('"') and " " in text:
        text = _DATE.sub("", text, count=1).rstrip()
    for wrap in ("**", "`"):
        if text.startswith(wrap) and text.endswith(wrap):
            text = text.removeprefix(wrap).removesuffix(wrap)
    return unquoted(text) or None


def git_sides(rest: str) -> tuple[str, str] | None:
    """The two paths, with their prefixes, of what stands behind `diff --git `.

    Paths with blanks are told apart only if both sides agree, as they do where nothing is renamed.
    """
    rest = rest.strip()
    if rest.startswith('"') or rest.endswith('"'):
        return _quoted_sides(rest)
    half = len(rest) // 2
    if len(rest) % 2 and rest[half] == " " and _bare(rest[:half]) == _bare(rest[half + 1 :]):
        return rest[:half], rest[half + 1 :]
    words = rest.split(" ")
    if len(words) == 2:
        return words[0], words[1]
    halves = rest.split(" b/")
    return (halves[0], "b/" + halves[1]) if len(halves) == 2 else None


def _quoted_sides(rest: str) -> tuple[str, str] | None:
    if match := _QUOTED.match(rest):
        first, second = match[0], rest[match.end() :].strip()
    else:
        first, _, second = rest.partition(' "')
        second = '"' + second
    old, new = unquoted(first), unquoted(second)
    return (old, new) if old and new else None


def _bare(path: str) -> str:
    return _PREFIX.sub("", path, count=1)


def agree(old: str | None, new: str | None, known: Known) -> bool:
    """Whether two sides can only be those of one file: what removed and added lines that look like
    a diff's header are not."""
    if old is None or new is None:
        return False
    if NOWHERE in (old, new):
        return old != new and is_path(_bare(new if old == NOWHERE else old), known)
    return _bare(old) == _bare(new) and is_path(_bare(new), known)


def plain(old: str, new: str, known: Known) -> tuple[str, str]:
    """The two sides as paths of the repository: without the prefixes, if those are some.

    They are where both sides have them; else where the base, or the other side, has the rest.  A
    side that is nowhere has none of its own.
    """
    if old == NOWHERE:
        return old, _alone(new, "b/", known)
    if new == NOWHERE:
        return _alone(old, "a/", known), new
    if _PREFIX.match(old) and _PREFIX.match(new) and old[0] != new[0]:
        return old[2:], new[2:]
    if old != new and (_bare(old) == new or old == _bare(new)):
        return _bare(old), _bare(new)
    return as_meant(undotted(old), known), as_meant(undotted(new), known)


def _alone(path: str, prefix: str, known: Known) -> str:
    own = known(path) and not known(path[2:])
    return path if own or not path.startswith(prefix) else path[2:] or path
