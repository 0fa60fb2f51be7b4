"""Text that was escaped on its way: entities for `<`, `>` and `&`, a lone CR for each line's end.

What it says is certain only in hindsight: where all its edits quote what the file has, and one of
the quotes holds what was escaped.  A text that shows how edits are written looks the same, and has
no such quotes.

Forms whose own signs need no escape (calls, patches, fences) do not show it at all: where their
quotes hold nothing to escape, they resolve, and the entities of their new text would land.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from patchq.core.model.frozen import frozen
from patchq.core.model.ops import WHOLE, halves
from patchq.core.model.values import Edit
from patchq.core.text.patterns import Pattern

_MARKERS = Pattern(r"^[ \t]*(?:&lt;){5,9} ?(?:SEARCH|ORIGINAL)\b", re.MULTILINE)
_FIRST = "&lt;" * 5
_ENTITY = Pattern(r"&(lt|gt|amp|quot|apos|#0*39|#x0*27);", re.IGNORECASE)
_NUMERIC = Pattern(r"&#(?:0*(6[02])|[xX]0*(3[cCeE]));")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_RAW = Pattern(r"[<>]|&(?!(?:lt|gt|amp|quot|apos|#\d{1,5}|#[xX][0-9a-fA-F]{1,4});)")
"""What is left of the signs in a text that was not escaped as a whole."""
_WRITTEN = Pattern(r"&(?:lt|gt|amp|quot|apos|#0*(?:3[489]|6[02])|#x0*(?:2[267]|3[ce]));", re.I)
_ANY_ENTITY = Pattern(
    r"&(?:lt|gt|amp|quot|apos|nbsp|copy|[mn]dash|hellip|#\d{2,7}|#[xX][0-9a-fA-F]{2,6});"
)
_LONE_AMPERSAND = Pattern(r"(?<!&amp;)&amp;(?![\w#]{1,31};|&amp;)")
_MARKUP = frozenset(
    ("html", "htm", "xhtml", "shtml", "xml", "xsl", "xslt", "xsd", "svg", "rss", "atom", "plist",
     "xaml", "resx", "wsdl", "pom", "vue", "svelte", "jsx", "tsx", "astro", "php", "phtml", "erb",
     "ejs", "hbs", "handlebars", "mustache", "twig", "njk", "liquid", "jsp", "jspx", "ftl",
     "cshtml", "razor", "jinja", "jinja2", "j2", "tmpl")
)  # fmt: skip
"""Endings of files in which a lone `&` has to be written as an entity."""
_BLOCKS = "search_replace"
"""The format whose markers tell that they were escaped."""

_DISGUISES = tuple(
    map(
        re.compile,
        (
            r"&(?:amp;)*(?:[lLgG][tT]|#0*6[02]|#[xX]0*3[cCeE]);",
            r"\\[<>*n]",
            r"\r[^\n]",
        ),
    )
)
"""Each begins with one character, and is found as fast as that."""
_LIKE_SIGNS = Pattern(r"[\uff1c\uff1e\ufe64\ufe65\u2039\u203a\u00ab\u00bb\u226a\u226b]")
_LOOKALIKES = str.maketrans(
    dict.fromkeys("\uff1c\ufe64\u2039", "<")
    | dict.fromkeys("\uff1e\ufe65\u203a", ">")
    | {"\u00ab": "<<", "\u226a": "<<", "\u00bb": ">>", "\u226b": ">>"}
)
_AMPERSANDS = Pattern(r"&(?:amp;)+")
_BACKSLASH = Pattern(r"\\([<>*=+-])")
_BREAK = Pattern(r"\r|\\r\\n|\\n")
_SPAN = Pattern(r"`[^`\n]*`")


@frozen
class Unescaped:
    """A text as it was before it was escaped, and the signs that entities stood for in it; none
    where only its lines' ends were changed."""

    text: str
    signs: frozenset[str]
    firm: bool
    """Whether all of those signs were escaped wherever they stand."""


def unescaped(text: str) -> Unescaped | None:
    """The text, if its edits stand there escaped; else None."""
    body = text.strip("\n")
    if "\r" in body and "\n" not in body:
        return Unescaped(text.replace("\r", "\n"), frozenset(), "---" not in body.split("\r"))
    if _FIRST not in text or not _MARKERS.search(text):
        return None
    signs = frozenset(map(_character, _ENTITY.finditer(text)))
    rest = _ENTITY.sub("", text)
    return Unescaped(_ENTITY.sub(_character, text), signs, not signs & set(rest))


def _character(match: re.Match[str]) -> str:
    return _CHARACTERS.get(match[1].lower(), "'")


def _numeric(match: re.Match[str]) -> str:
    return chr(int(match[1]) if match[1] else int(match[2], 16))


def is_borne_out(edits: Sequence[Edit], found: Unescaped) -> bool:
    """Whether the edits quote, all of them, and what they quote shows how the text was escaped."""
    if not edits or not found.firm:
        return False
    if any(isinstance(edit.op, WHOLE) for edit in edits):
        return False
    if found.signs and any(edit.format != _BLOCKS for edit in edits):
        return False
    both = [halves(edit.op) for edit in edits]
    quoted = set("".join(old for old, _ in both)) & found.signs
    written = set("".join(new for _, new in both)) & found.signs
    return not found.signs or bool(quoted and written <= quoted | {"<", ">"})


def entities_in_doubt(
    text: str, edits: Sequence[Edit], base_text: Callable[[str], str | None]
) -> Edit | None:
    """The first edit that writes entities of which nobody can tell whether they are meant: the
    whole response holds `<`, `>` and `&` as entities only, and the file has no entity yet."""
    if "&" not in text or not _WRITTEN.search(text) or _RAW.search(text):
        return None
    both = [(edit, *halves(edit.op)) for edit in edits]
    if any(_RAW.search(old) or _RAW.search(new) for _, old, new in both):
        return None
    for edit, _, new in both:
        ending = edit.path.rpartition(".")[2].lower()
        in_doubt = _LONE_AMPERSAND.sub("", new) if ending in _MARKUP else new
        if _WRITTEN.search(in_doubt) and not _ANY_ENTITY.search(base_text(edit.path) or ""):
            return edit
    return None


def may_disguise(text: str) -> bool:
    """Whether an escaped marker may stand anywhere in a text."""
    if any(one.search(text) for one in _DISGUISES):
        return True
    return not text.isascii() and _LIKE_SIGNS.search(text) is not None


def disguised(line: str) -> Iterable[str]:
    """The lines that a line may stand for, if something in it is escaped; what stands in
    backticks is quoted."""
    if not may_disguise(line):
        return ()
    line = _SPAN.sub("", line) if "`" in line else line
    plain = _plain(line)
    pieces = _BREAK.split(plain)
    return pieces if plain != line or len(pieces) > 1 else ()


def undisguised(text: str) -> str:
    """A text with the lines that its own may stand for, as `disguised` tells them."""
    return _BREAK.sub("\n", _plain(_SPAN.sub("", text) if "`" in text else text))


def _plain(text: str) -> str:
    plain = text
    if "&" in text:
        plain = _NUMERIC.sub(_numeric, _AMPERSANDS.sub("&", text))
        plain = _ENTITY.sub(_character, plain)
    plain = _BACKSLASH.sub(r"\1", plain) if "\\" in plain else plain
    return plain if plain.isascii() else plain.translate(_LOOKALIKES)
