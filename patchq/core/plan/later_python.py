"""Python that a later version knows than the one that runs: a closed list of constructs.

A line that the running parser refuses is rewritten without them and read again, line by line, until
it is understood, or what is left has nothing to do with them.  Strings with fields are scanned as
Python 3.12 reads them: a field may hold any expression, the string's own quotes among it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from patchq.core.model.frozen import frozen
from patchq.core.text.patterns import Pattern

Version = tuple[int, int]
Refusal = tuple[int, str]
"""The line (1-based) that a parser refuses, and why."""
_MOST_LATER = 200
"""So many lines are rewritten, each of which costs another look at the file."""
_MOST_JOINED = 40
"""So many lines one string may span."""


@frozen
class Construct:
    """Something that Python knows since `since`; `pattern` finds it on a line, and `plain` is what
    earlier versions would have in its place."""

    name: str
    since: Version
    pattern: Pattern
    plain: str


_PARAMETERS = r"\[(?:[^\[\]\n]|\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\])*\]"
_TYPE = r"(?:[\w.]*\.)?[A-Z]\w*"
CONSTRUCTS = (
    Construct(
        "a `type` statement", (3, 12),
        Pattern(rf"(?<![^\s:;])type[ \t]+([^\W\d]\w*)[ \t]*(?:{_PARAMETERS})?[ \t]*(?==[^=])"),
        r"\1 ",
    ),
    Construct(
        "type parameters", (3, 12),
        Pattern(rf"\b(def|class)([ \t]+[^\W\d]\w*)[ \t]*{_PARAMETERS}"),
        r"\1\2",
    ),
    Construct(
        "a template string", (3, 14),
        Pattern(r"(?<![\w\"'])(?:[tT][rR]?|[rR][tT])(?=[\"'])"),
        "f",
    ),
    Construct(
        "`except` of several types without brackets", (3, 14),
        Pattern(rf"\b(except\*?)[ \t]+({_TYPE}(?:[ \t]*,[ \t]*{_TYPE})+)[ \t]*(?=:)"),
        r"\1 (\2)",
    ),
    Construct(
        "a lazy import", (3, 15),
        Pattern(r"(?<![^\s:;])lazy[ \t]+(?=(?:import|from)\b)"),
        "",
    ),
    Construct(
        "unpacking in a comprehension", (3, 15),
        Pattern(r"([\[({])[ \t]*\*{1,2}(?=[^\[\](){}]+\bfor\b)"),
        r"\1",
    ),
)  # fmt: skip
FIELDS = "a string whose field holds its own quotes, a backslash, a comment or a line break"
_FIELDS_SINCE: Version = (3, 12)


def understood(
    text: str, refusal: Refusal, parse: Callable[[str], Refusal | None]
) -> str | Refusal:
    """What makes a text, refused as told, Python of a later version; or else what is refused
    whatever the version."""
    lines, met = text.split("\n"), dict[str, None]()
    for _ in range(_MOST_LATER):
        at = refusal[0] - 1
        name = _rewrite(lines, at) if 0 <= at < len(lines) else None
        if name is None:
            return refusal
        met[name] = None
        again = parse("\n".join(lines))
        if again is None:
            break
        refusal = again
    return f"it holds {', '.join(met)}, and the Python here is {_spelled(sys.version_info[:2])}"


def _rewrite(lines: list[str], at: int) -> str | None:
    """Take a later construct off line `at`; its name and version, or None if there is none."""
    line = lines[at]
    for construct in CONSTRUCTS:
        if sys.version_info < construct.since:
            plain = construct.pattern.sub(construct.plain, line)
            if plain != line:
                lines[at] = plain
                return f"{construct.name} ({_spelled(construct.since)})"
    if sys.version_info < _FIELDS_SINCE and _without_fields(lines, at):
        return f"{FIELDS} ({_spelled(_FIELDS_SINCE)})"
    return None


def _spelled(version: Version) -> str:
    return ".".join(map(str, version))


# ---------------------------------------------------------------- strings with fields

_OPENING = Pattern(r"(?i)(?<!\w)([bu]|[ft]?r?|r[ft]?|br|rb)(\"{3}|'{3}|\"|')|#")


def _without_fields(lines: list[str], at: int) -> bool:
    """Put an empty string in place of each on line `at` whose fields only Python 3.12 can read."""
    text = "\n".join(lines[at : at + _MOST_JOINED])
    first = len(lines[at])
    parts, begun, place = list[str](), 0, 0
    while (opened := _OPENING.search(text, place)) and opened.start() <= first and opened[2]:
        end, later = _string(text, opened)
        if end is None:
            break
        if later:
            parts += [text[begun : opened.start()], '""']
            begun = end
        place = end
    if not parts:
        return False
    joined = text.count("\n", 0, begun)
    rest = text[begun:].split("\n")[0]
    lines[at : at + joined + 1] = ["".join([*parts, rest]).replace("\n", " "), *[""] * joined]
    return True


def _string(text: str, opened: re.Match[str]) -> tuple[int | None, bool]:
    """Where the string ends that opens there, None if it does not; and whether it takes 3.12."""
    prefix, quote = opened[1].lower(), opened[2]
    fields, i, later = "f" in prefix or "t" in prefix, opened.end(), False
    while i < len(text):
        if text.startswith(quote, i):
            return i + len(quote), later
        if text[i] == "\\":
            i += 2
        elif text[i] == "\n" and len(quote) == 1:
            return None, later
        elif fields and text[i] == "{" and not text.startswith("{{", i):
            end, inner = _field(text, i + 1)
            if end is None:
                return None, later
            inside = text[i:end]
            later = later or inner or any(sign in inside for sign in (quote, "\\", "#"))
            later = later or (len(quote) == 1 and "\n" in inside)
            i = end
        else:
            i += 2 if fields and text.startswith(("{{", "}}"), i) else 1
    return None, later


def _field(text: str, i: int) -> tuple[int | None, bool]:
    """The same of the field that begins at `i`, behind its brace."""
    depth, later = 0, False
    while i < len(text):
        if (opened := _OPENING.match(text, i)) and opened[2]:
            end, inner = _string(text, opened)
            if end is None:
                break
            i, later = end, later or inner
            continue
        if text[i] == "#" and (i := text.find("\n", i)) < 0:
            break
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            if not depth:
                return (i + 1 if text[i] == "}" else None), later
            depth -= 1
        i += 1
    return None, later
