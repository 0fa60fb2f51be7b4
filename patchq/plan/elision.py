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
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from patchq.model.ops import halves
from patchq.model.values import Edit, Hunk, Problem
from patchq.plan.targets import Rules
from patchq.resolve.ladder import replaced
from patchq.text.line_diff import line_diff
from patchq.text.lines import Text

_SAYS = re.compile(
    r"""
    (?: ^\s* (?: \#+ | //+ | /?\*+ | --+ | ;+ | <!-- | \{/\* | \(\* | \{- | %+
               | "(?!.*") | '(?!.*') )?       # a quote that is closed again is a string
      | \s (?: \#+ | //+ | /\*+ | <!-- | \{/\* ) )
    \s* (?: \.{3} | \u2026 ) (?!\w) .*
    \b (?: existing | rest | remaining | unchanged | other | same | omitted ) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COMMENT = re.compile(
    r"""
    \s* (?: \#+(?!!) | //+!? | \{?/\*+ | \*+(?=\s) | --+(?=\s) | ;+ | <!-- | \(\* | \{- | %+
         | "(?!.*") | '(?!.*') | (?:rem|REM)(?=\s) )
    (?P<text> .*?)
    (?: \*+/\}? | --> | \*\) | -\} )? \s* \Z
    """,
    re.VERBOSE | re.DOTALL,
)
_SHOWN_COMMENT = re.compile(
    r"\s*(?:<!--|\{/\*|[*_]{0,3}[\[(]|\.\.\s)(?P<text>.*?)"
    r"(?:-->|\*/\}|[\])]\.?[*_]{0,3})?\s*\Z",
    re.DOTALL,
)
"""What a document has for comments: in Markdown a `#` makes a heading."""
_DOTS = re.compile(r"\.{3}|\u2026")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")
_DOCUMENTS = frozenset({"md", "markdown", "mdx", "rst", "txt", "text", "adoc", "asciidoc", "org"})
_FENCE = re.compile(r"\s*(?:`{3}|~{3})")

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
_HEADED = re.compile(
    r"(?:(?:the|all|your|any|some) )*(?:existing|remaining|previous|unchanged|other)(?: \w+){1,2}"
)
"""Words that may also head what stands below them."""
_STRONG = re.compile(
    r"(?:(?:the|all|and|keep|leave|insert|add|see) )*(?:rest|remainder)(?: of(?: \w+){1,5})?"
    r"|(?:\w+ ){1,4}(?:remains?|stays?|kept|left) (?:unchanged|as before|the same|as is)"
    r"|(?:\w+ ){0,4}unchanged"
    r"|(?:the )?same(?: as (?:before|above|previously|original|the original))?"
)
_ABROAD = re.compile(
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
    "omitted",
)
"""One of these is in every text that says so in English."""


def stated(edit: Edit, rules: Rules, base: Text | None) -> Problem | None:
    """The first new line that says itself that it stands for others, as a problem; and a new file
    of nothing but such lines, be it of dots alone."""
    old, new = halves(edit.op)
    if not rules.elision or not _may_say(new):
        return None
    if base is None and _is_nothing_else(edit.path, new):
        return _problem(edit, next(line for line in new.split("\n") if line.strip()))
    if is_document(edit.path) or not _DOTS.search(new):
        return None
    suspects = [line for line in new.split("\n") if _says(line)]
    known = _known(old, base) if suspects else frozenset[str]()
    line = next((line for line in suspects if line.strip() not in known), None)
    return None if line is None else _problem(edit, line)


def left_out(edit: Edit, rules: Rules, text: Text, hunks: Sequence[Hunk]) -> Problem | None:
    """The first new line that stands for lines which the edit takes away, as a problem."""
    old, new = halves(edit.op)
    if not rules.elision or not _may_say(new):
        return None
    known: frozenset[str] | None = None
    for place in range(len(hunks)):
        for line, count in _suspects(edit.path, text, hunks, place):
            known = _known(old, text) if known is None else known
            if line.strip() not in known:
                return _problem(edit, line, f", {count} lines of the file" if count else "")
    return None


@lru_cache(maxsize=8)
def _may_say(text: str) -> bool:
    """Whether any line of a text could; asked more than once of each edit."""
    folded = text.casefold()
    return any(sign in folded for sign in _SIGNS) or _ABROAD.search(text) is not None


def _problem(edit: Edit, line: str, what: str = "") -> Problem:
    return Problem(
        "edit.elided",
        f"edit {edit.id} would write a line into {edit.path} that stands for others{what}: "
        f"{line.strip()[:99]!r}",
        "write every line out, or leave unchanged lines out of both halves",
        edit=edit.id,
        path=edit.path,
    )


def _known(old: str, base: Text | None) -> frozenset[str]:
    """The lines of the quote and of the file."""
    own = () if base is None else base.contents
    lines = (line.decode("utf-8", "surrogateescape").strip() for line in own)
    return frozenset([*(line.strip() for line in old.split("\n")), *lines])


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
    path: str, text: Text, hunks: Sequence[Hunk], place: int
) -> Iterator[tuple[str, int]]:
    """The lines of one replacement that seem to stand for lines that go, and their number: 0 for
    one that says so itself."""
    hunk = hunks[place]
    if not _may_say(hunk.new.decode("utf-8", "surrogateescape")):
        return
    old = text.whole[hunk.start : hunk.end].decode("utf-8", "surrogateescape").split("\n")
    new = hunk.new.decode("utf-8", "surrogateescape").split("\n")
    if is_document(path):
        for k, line in enumerate(new):
            said = _SAYS.search(line) and not _is_shown(text, hunks[: place + 1], new[:k], line)
            if said and text.data.strip():
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
            shown = is_document(path) and _is_shown(text, hunks[: place + 1], new[:k], new[k])
            if not shown and (not _is_dots(new[k]) or _goes_on(path, text, hunk, new, k)):
                yield new[k], gone


def _stands_for(path: str, line: str, *, last: bool) -> bool:
    where = _rest_of(path, line)
    return (
        where == "first or last"
        or (where == "last" and last)
        or _is_dots(line)
        or (is_document(path) and _says(line))
    )


def _is_shown(text: Text, hunks: Sequence[Hunk], above: Sequence[str], line: str) -> bool:
    """Whether a document shows the line as code: in a fence, or indented."""
    if line.startswith(("    ", "\t")):
        return True
    before = replaced(text.whole, hunks[:-1], text.offset, hunks[-1].start)
    lines = before.decode("utf-8", "surrogateescape").split("\n")
    return sum(1 for other in (*lines, *above) if _FENCE.match(other)) % 2 == 1


def _goes_on(path: str, text: Text, hunk: Hunk, new: Sequence[str], k: int) -> bool:
    """Whether bare dots stand for lines: in Python they may be a body, which nothing goes on."""
    if path.endswith((".yml", ".yaml")):
        return False
    if not path.endswith((".py", ".pyi")):
        return True
    behind = text.whole[hunk.end :].decode("utf-8", "surrogateescape")
    rest = (line for line in (*new[k + 1 :], *behind.split("\n")) if line.strip())
    line = next(rest, "")
    return bool(line) and _indent(line) == _indent(new[k])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
