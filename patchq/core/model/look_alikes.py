# ruff: noqa: RUF001  (the characters that look like others are what this file is about)
"""Names that people take for one another.

They differ by case, by width, by letters of another alphabet, or by characters that take no place.
Who reads a list of files sees one name twice, or one file where there are two, and a program that
looks for the one may find the other.  The letters are those of Unicode's confusables (UTS 39) whose
shape is one of ASCII's, beyond what NFKC folds, of the alphabets that fonts commonly have.  Within
ASCII only a capital I and an l, a 0 and an O are taken for one another: `1` and `l`, `rn` and `m`
tell real files apart.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from patchq.core.model.names import MAX_PATH_BYTES, collision_key

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


def told_apart(one: str, other: str) -> tuple[str, str]:
    """Return two names, with differing characters that look alike written out.

    They are written as in `\\u0430`.
    """
    if (one.isascii() and other.isascii()) or max(len(one), len(other)) > MAX_PATH_BYTES:
        return one, other
    from difflib import SequenceMatcher

    shown: tuple[list[str], list[str]] = ([], [])
    for what, a0, a1, b0, b1 in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        parts = one[a0:a1], other[b0:b1]
        alike = what != "equal" and _look_alike(*parts)
        for out, part in zip(shown, parts, strict=True):
            out.append("".join(map(_written_out, part)) if alike else part)
    return "".join(shown[0]), "".join(shown[1])


def _look_alike(one: str, other: str) -> bool:
    one, other = (
        "".join(c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) != "Cf")
        for text in (one, other)
    )
    mine, others = look(one), look(other)
    if mine[2] == others[2] or (mine[0] != others[0] and mine[1] == others[1]):
        return True
    pairs = [*zip(one, other, strict=False)]
    return len(one) == len(other) and all(a == b or _kind(a) != _kind(b) for a, b in pairs)


def _kind(character: str) -> str:
    """Return a letter's script, or any other character itself."""
    name = unicodedata.name(character, "")
    return name.partition(" ")[0] if character.isalpha() else character


def _written_out(character: str) -> str:
    code = ord(character)
    if code < 0x7F:
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
