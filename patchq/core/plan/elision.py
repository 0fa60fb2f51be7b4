"""Lines of new text that stand for others, which a model left out instead of writing them.

With dots and a word of the rest (`# ... existing code ...`) a line says so itself, and is refused
wherever it stands.  A comment that is nothing but such words, or nothing but dots, may also be a
heading: it is refused where it is the first or last line of a change that takes more lines away
than it writes beside it.  A line that the file or the quote has already stands for itself.

Markdown and plain text show code, which elides as a matter of course.  There only a line outside of
fences and indented code can stand for lines of the file: one of dots and words in a file that has
lines already, any other only where lines go.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate, chain

from patchq.core.model.ops import halves
from patchq.core.model.values import Edit, Hunk, Problem
from patchq.core.plan.targets import Rules
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import Text
from patchq.core.text.patterns import Pattern
from patchq.core.text.quote import decode

_SAYS = Pattern(
    r"""
    (?: ^\s* (?: \#+ | //+ | /?\*+ | --+ | ;+ | <!-- | \{/\* | \(\* | \{- | %+
               | "(?!.*") | '(?!.*') )?       # a quote that is closed again is a string
      | \s (?: \#+ | //+ | /\*+ | <!-- | \{/\* ) )
    \s* (?: \.{3} | \u2026 ) (?!\w) .*
    \b (?: existing | rest | remaining | unchanged | other | same | omitted ) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COMMENT = Pattern(
    r"""
    \s* (?: \#+(?!!) | //+!? | \{?/\*+ | \*+(?=\s) | --+(?=\s) | ;+ | <!-- | \(\* | \{- | %+
         | "(?!.*") | '(?!.*') | (?:rem|REM)(?=\s) )
    (?P<text> .*?)
    (?: \*+/\}? | --> | \*\) | -\} )? \s* \Z
    """,
    re.VERBOSE | re.DOTALL,
)
_SHOWN_COMMENT = Pattern(
    r"\s*(?:<!--|\{/\*|[*_]{0,3}[\[(]|\.\.\s)(?P<text>.*?)"
    r"(?:-->|\*/\}|[\])]\.?[*_]{0,3})?\s*\Z",
    re.DOTALL,
)
"""What a document has for comments: in Markdown a `#` makes a heading."""
_DOTS = Pattern(r"\.{3}|\u2026")
_WORD = Pattern(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")
_DOCUMENTS = frozenset({"md", "markdown", "mdx", "rst", "txt", "text", "adoc", "asciidoc", "org"})
_FENCE = Pattern(r"\s*(?:`{3}|~{3})")

_LEFT = frozenset({"rest", "remainder", "remaining", "existing", "unchanged", "same", "other",
                   "previous", "omitted"})  # fmt: skip
"""The words that say that something is left as it is."""
_THINGS = """
    code codes line lines function functions method methods class classes file files module modules
    body implementation implementations logic import imports include includes definition definitions
    declaration declarations statement statements content contents text test tests case cases field
    fields property properties attribute attributes prop props route routes handler handlers rule
    rules style styles css html jsx markup element elements component components config
    configuration setup initialization entries variable variables constant constants type types
    interface interfaces endpoint endpoints hook hooks parameter parameters argument arguments
    member members helper helpers utilities export exports dependencies section sections block
    blocks branch branches loop docstring docstrings documentation comment comments stuff things
    everything part parts script program page template app service services check checks validation
    steps commands struct structs enum enums constructor constructors getters setters fixtures
    assertions
"""
_OF = frozenset(_THINGS.split())
"""What it is of."""
_FILLERS = """
    the a an all any of as is are be it its this that these those here there above below before
    after in for from to with and or no not any your our my keep keeping keeps kept leave left
    retain remain remains stay stays go goes continue continues follow follows following shown
    brevity etc omitted elided unmodified untouched intact identical change changes changed was were
    unaffected exactly still
"""
_KNOWN = frozenset([*_LEFT, *_OF, *_FILLERS.split()])
_MOST_WORDS = 12
_HEADED = Pattern(
    r"(?:(?:the|all|your|any|some) )*(?:existing|remaining|previous|unchanged|other)(?: \w+){1,2}"
)
"""Words that may also head what stands below them."""
_STRONG = Pattern(
    r"(?:(?:the|all|and|keep|leave|insert|add|see) )*(?:rest|remainder)(?: of(?: \w+){1,5})?"
    r"|(?:\w+ ){1,4}(?:remains?|stays?|kept|left) (?:unchanged|as before|the same|as is)"
    r"|(?:\w+ ){0,4}unchanged"
    r"|(?:the )?same(?: as (?:before|above|previously|original|the original))?"
)
_ABROAD = Pattern(
    r"""
    \b(?: (?:der|de)[ ]rest | rest[ ](?:bleibt|der|des|wie|blijft)\b | restlich\w*
      | übrig\w* | unverändert\w*
      | (?:bleibt|bleiben)[ ]gleich
      | wie[ ](?:bisher|vorher|gehabt) | ongewijzigd | overige | oförändra\w* | resten
      | le[ ]reste | restante?s? | inchangée?s? | sans[ ]changements? | comme[ ]avant
      | (?:el|il|o)[ ]resto | sin[ ]cambios | igual[ ]que[ ]antes | invariat[oaie]
      | rimanent[ei] | resto[ ]d\w+ | sem[ ](?:alterações|mudanças) | inalterad[oa]s?
      | остальн\w+ | без[ ]изменений | не[ ]измен\w+ | решт\w+ | без[ ]змін
      | reszt\w+ | pozostał\w+ | bez[ ]zmian | zbytek | beze[ ]změn
      | geri[ ]kalan\w* | kalan[ ]\w+ | değişme\w+ )\b
    | 其余 | 其餘 | 剩余 | 剩餘 | 剩下 | 不变 | 不變 | 省略 | 保持原样 | 同上
    | 残り | 変更なし | 以下同様 | そのまま | 나머지 | 변경[ ]?없음 | 그대로 | 생략
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""How other languages say that something is left as it is."""
_MOST_LETTERS = 60
_SIGNS = (
    *("...", "\u2026", "rest", "remain", "existing", "unchanged", "same", "other", "previous"),
    *("omitted", "gleich", "bisher", "vorher", "gehabt", "ongewijzigd", "overige", "sans change"),
    *("comme avant", "cambios", "que antes", "invariat", "rimanent", "inalterad", "reszt", "zmian"),
    *("zbytek", "kalan"),
)
"""One of these is in every text of plain letters that says so."""


def stated(edit: Edit, rules: Rules, base: Text | None) -> Problem | None:
    """The first new line that says itself that it stands for others, as a problem; and a new file
    of nothing but such lines, be it of dots alone."""
    old, new = halves(edit.op)
    if not rules.elision or not (base is None or _has_dots(new)) or not _may_say(new):
        return None
    if base is None and _is_nothing_else(edit.path, new):
        return _problem(edit, next(line for line in new.split("\n") if line.strip()))
    if is_document(edit.path) or not _has_dots(new):
        return None
    suspects = (line for line in new.split("\n") if _says(line))
    line = next((line for line in suspects if not _is_known(line, old, base)), None)
    return None if line is None else _problem(edit, line)


def left_out(edit: Edit, rules: Rules, text: Text, hunks: Sequence[Hunk]) -> Problem | None:
    """The first new line that stands for lines which the edit takes away, as a problem."""
    if not rules.elision:
        return None
    shown = None
    old, new = halves(edit.op)
    for place, hunk in enumerate(hunks):
        if not _may_say(hunk.new.decode("utf-8", "surrogateescape")) or not _may_say(new):
            continue
        shown = shown or _ShownCode(text, hunks)
        for line, count in _suspects(edit.path, text, hunks, place, shown):
            if not _is_known(line, old, text):
                return _problem(edit, line, f", {count} lines of the file" if count else "")
    return None


def may_leave_out(new: str, written: bytes) -> bool:
    """Whether an edit of a file that there is, or one of several, could have a line that stands for
    others; `written` is what it brings of its new half."""
    return _has_dots(new) or _may_say(written.decode("utf-8", "surrogateescape"))


@lru_cache(maxsize=8)
def _may_say(text: str) -> bool:
    """Whether any line of a text could; asked more than once of each edit."""
    folded = text.casefold()
    for sign in _SIGNS:  # a loop takes half the time of a generator
        if sign in folded:
            return True
    return not text.isascii() and _ABROAD.search(text) is not None


def _has_dots(text: str) -> bool:
    return "..." in text or "\u2026" in text


def _problem(edit: Edit, line: str, what: str = "") -> Problem:
    return Problem(
        "edit.elided",
        f"edit {edit.id} would write a line into {edit.path} that stands for others{what}: "
        f"{line.strip()[:99]!r}",
        "write every line out, or leave unchanged lines out of both halves",
        edit=edit.id,
        path=edit.path,
    )


def _is_known(line: str, old: str, base: Text | None) -> bool:
    """Whether the quote or the file has the line."""
    bare = line.strip()
    if any(bare == other.strip() for other in old.split("\n")):
        return True
    return base is not None and bool(
        base.view(_bare).where(bare.encode("utf-8", "surrogateescape"))
    )


def _bare(lines: list[bytes]) -> list[bytes]:
    """Lines without the blanks round them, as a text reads them."""
    text = (line.decode("utf-8", "surrogateescape").strip() for line in lines)
    return [line.encode("utf-8", "surrogateescape") for line in text]


def is_document(path: str) -> bool:
    """Whether a file is Markdown or plain text."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() in _DOCUMENTS if "." in name else name.isupper()


# ---------------------------------------------------------------- what a line says


def _says(line: str) -> bool:
    """Whether dots and words together say that the line stands for others."""
    if _SAYS.search(line):
        return True
    comment = _COMMENT.fullmatch(line) if _DOTS.search(line) else None
    return bool(
        comment and _WORD.search(comment["text"]) and _is_rest(comment["text"]) == "first or last"
    )


@cache
def _is_rest(text: str) -> str:
    """Where words, or dots, stand for others: as the `first or last` line of a change, as its
    `last`, or nowhere (``)."""
    words = [word.lower() for word in _WORD.findall(text)]
    if not words:
        return "first or last" if _DOTS.search(text) else ""
    if len(words) <= _MOST_WORDS // 2 and len(text) <= _MOST_LETTERS and _ABROAD.search(text):
        return "first or last"
    if len(words) > _MOST_WORDS or not _LEFT.intersection(words):
        return ""
    said = " ".join(words)
    if _HEADED.fullmatch(said) and not _STRONG.fullmatch(said):
        settled = "other" not in words and words[-1] in _OF
        return "first or last" if settled else "last"
    whole = all(word in _KNOWN for word in words) and len(words) > 1
    return "first or last" if whole or _STRONG.fullmatch(said) else ""


def _is_nothing_else(path: str, text: str) -> bool:
    """Whether a text is nothing but lines that stand for others."""
    lines = [line for line in text.split("\n") if line.strip()]
    stub = path.endswith((".py", ".pyi"))
    return bool(lines) and all(
        _says(line) or _rest_of(path, line) or (not stub and _is_dots(line)) for line in lines
    )


def _rest_of(path: str, line: str) -> str:
    """The same of a line of the file, by the comments that it can have."""
    comment = (_SHOWN_COMMENT if is_document(path) else _COMMENT).fullmatch(line)
    return _is_rest(comment["text"].strip()) if comment else ""


def _is_dots(line: str) -> bool:
    return line.strip() in ("...", "\u2026", "[...]", "[\u2026]", "(...)")


# ---------------------------------------------------------------- what goes for it


def _suspects(
    path: str, text: Text, hunks: Sequence[Hunk], place: int, shown: _ShownCode
) -> Iterator[tuple[str, int]]:
    """The lines of one replacement that seem to stand for lines that go, and their number: 0 for
    one that says so itself."""
    hunk = hunks[place]
    old = text.part(hunk.start, hunk.end).decode("utf-8", "surrogateescape").split("\n")
    new = hunk.new.decode("utf-8", "surrogateescape").split("\n")
    if is_document(path):
        for k, line in enumerate(new):
            said = _SAYS.search(line) and not shown.holds(place, new, k)
            if said and text.data and not text.data.isspace():
                yield line, 0
    for a0, a1, b0, b1 in line_diff(old, new):
        gone = sum(1 for line in old[a0:a1] if line.strip())
        written = [k for k in range(b0, b1) if new[k].strip()]
        if not written or gone <= len(written) - 2:
            continue
        edges = dict.fromkeys([written[0], written[-1]])
        found = [k for k in edges if _stands_for(path, new[k], last=k == written[-1])]
        if not found or gone <= len(written) - len(found):
            continue
        for k in found:
            if is_document(path) and shown.holds(place, new, k):
                continue
            if not _is_dots(new[k]) or _goes_on(path, text, hunk, new, k):
                yield new[k], gone


def _stands_for(path: str, line: str, *, last: bool) -> bool:
    where = _rest_of(path, line)
    return (
        where == "first or last"
        or (where == "last" and last)
        or _is_dots(line)
        or (is_document(path) and _says(line))
    )


class _ShownCode:
    """What a document shows as code of the lines that an edit writes."""

    def __init__(self, text: Text, hunks: Sequence[Hunk]) -> None:
        self._text = text
        self._hunks = hunks
        self._inside: dict[int, list[int]] = {}

    def holds(self, place: int, lines: Sequence[str], k: int) -> bool:
        """Whether one of the lines that a replacement writes is in a fence, or indented."""
        if lines[k].startswith(("    ", "\t")):
            return True
        if place not in self._inside:
            self._inside[place] = list(accumulate(map(_is_fence, lines), initial=0))
        return (self._before[place] + self._inside[place][k]) % 2 == 1

    @cached_property
    def _before(self) -> list[int]:
        """How many lines that begin or end a fence stand before each replacement."""
        text, line = self._text, self._text.line_at(self._hunks[0].start) - 1
        count = bisect_left(text.view(_fences).where(b"`"), line)
        counts, at, unended = list[int](), text.starts[line], b""
        for hunk in self._hunks:
            *lines, unended = (unended + text.whole[at : hunk.start]).split(b"\n")
            count += sum(map(_is_fence, map(decode, lines)))
            counts.append(count + _is_fence(decode(unended)))
            at, unended = hunk.end, unended + hunk.new
        return counts


def _fences(lines: list[bytes]) -> list[bytes]:
    return [b"`" if _is_fence(decode(line)) else b"" for line in lines]


def _is_fence(line: str) -> bool:
    return _FENCE.match(line) is not None


def _goes_on(path: str, text: Text, hunk: Hunk, new: Sequence[str], k: int) -> bool:
    """Whether bare dots stand for lines: in Python they may be a body, which nothing goes on."""
    if path.endswith((".yml", ".yaml")):
        return False
    if not path.endswith((".py", ".pyi")):
        return True
    rest = chain(new[k + 1 :], _behind(text, hunk.end))
    line = next((line for line in rest if line.strip()), "")
    return bool(line) and _indent(line) == _indent(new[k])


def _behind(text: Text, at: int) -> Iterator[str]:
    """The lines from an offset on."""
    while at < len(text.whole):
        end = text.whole.find(b"\n", at) + 1 or len(text.whole)
        yield decode(text.whole[at:end])
        at = end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
