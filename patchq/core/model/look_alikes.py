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

from patchq.core.model.names import collision_key

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
