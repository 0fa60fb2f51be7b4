"""New lines that stand for others, which a model left out instead of writing them.

With dots and a word of the rest (`# ... existing code ...`) a line says so itself, and is refused
wherever it stands.  Bare dots, and a comment with such a word, are refused at the edge of a change
that takes at least two lines more away than it writes.  A line that the file or the quote has
already stands for itself.  Documents show code, which elides as a matter of course: of them only a
new file of nothing else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchq.core.model.ops import halves
from patchq.core.model.values import Edit, ErrorProblem, Hunk
from patchq.core.plan.targets import EditRefused, PlanRules
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import Text

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
_WORD = re.compile(r"[^\W_]+")
_LEFT = frozenset(("rest", "remaining", "existing", "unchanged", "same", "omitted", "previous"))
_MOST_OTHERS = 7
_SIGN = re.compile("|".join((*sorted(_LEFT), r"\.\.\.", "\u2026")).encode(), re.IGNORECASE)
_DOTS = frozenset(("...", "\u2026", "[...]", "[\u2026]", "(...)"))
_DOTS_ARE_CODE = (".py", ".pyi", ".yml", ".yaml")
_DOCUMENTS = frozenset(("md", "markdown", "mdx", "rst", "txt", "text", "adoc", "asciidoc", "org"))


def check_lines(edit: Edit, rules: PlanRules, base: Text | None) -> None:
    """Raise `EditRefused` for a new line that says itself that it stands for others.

    In a new file, without a `base`, also for one of nothing but lines that stand for others.
    """
    old, new = halves(edit.op)
    if not rules.elision or not (base is None or _has_dots(new)):
        return
    if base is None and (line := _is_nothing_else(edit.path, new)):
        raise _refused(edit, line)
    if not is_document(edit.path) and _has_dots(new):
        for line in new.split("\n"):
            if _SAYS.search(line) and not _is_known(line, old, base):
                raise _refused(edit, line)


def check_changes(edit: Edit, rules: PlanRules, text: Text, hunks: Sequence[Hunk]) -> None:
    """Raise `EditRefused` for a new line that stands for lines which the edit takes away."""
    if not rules.elision or is_document(edit.path):
        return
    old = halves(edit.op)[0]
    for hunk in hunks:
        for line, count in _suspects(edit.path, text, hunk):
            if not _is_known(line, old, text):
                raise _refused(edit, line, f", {count} lines of the file")


def is_document(path: str) -> bool:
    """Return whether a file is Markdown or plain text."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() in _DOCUMENTS if "." in name else name.isupper()


def _has_dots(text: str) -> bool:
    return "..." in text or "\u2026" in text


def _is_nothing_else(path: str, text: str) -> str | None:
    """Return the first line of a text in which every line stands for others."""
    lines = [line for line in text.split("\n") if line.strip()]
    stands = bool(lines) and all(_SAYS.search(line) or _stands_for(path, line) for line in lines)
    return lines[0] if stands else None


def _stands_for(path: str, line: str) -> bool:
    """Return whether a line at a change's edge stands for the lines that go."""
    if line.strip() in _DOTS:
        return not path.endswith(_DOTS_ARE_CODE)
    comment = _COMMENT.fullmatch(line)
    words = [word.lower() for word in _WORD.findall(comment["text"])] if comment else []
    left = _LEFT.intersection(words)
    return bool(left) and len(words) - len(left) <= _MOST_OTHERS


def _suspects(path: str, text: Text, hunk: Hunk) -> Iterator[tuple[str, int]]:
    """Yield the lines of a replacement that stand for lines that go, and the number of these."""
    if text.part(hunk.start, hunk.end).count(b"\n") < 2 or not _SIGN.search(hunk.new):
        return  # one line that is written takes the place of three at least
    old = text.part(hunk.start, hunk.end).decode("utf-8", "surrogateescape").split("\n")
    new = hunk.new.decode("utf-8", "surrogateescape").split("\n")
    for a0, a1, b0, b1 in line_diff(old, new):
        gone = sum(1 for line in old[a0:a1] if line.strip())
        written = [line for line in new[b0:b1] if line.strip()]
        if not written or gone < len(written) + 2:
            continue
        for line in dict.fromkeys((written[0], written[-1])):
            if _stands_for(path, line):
                yield line, gone


def _refused(edit: Edit, line: str, what: str = "") -> EditRefused:
    return EditRefused(
        ErrorProblem(
            "edit.elided",
            f"edit {edit.id} would write a line into {edit.path} that stands for others{what}: "
            f"{line.strip()[:99]!r}",
            "write every line out, or leave unchanged lines out of both halves",
            edit=edit.id,
            path=edit.path,
        )
    )


def _is_known(line: str, old: str, base: Text | None) -> bool:
    """Return whether the quote or the file has the line."""
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
