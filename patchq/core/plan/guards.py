r"""Checks of new text that a model wrote and does not mean.

A file of escapes, a whole file that keeps too little, text that would give a file two encodings,
and placeholders for other lines are refused.

With dots and a word of the rest (`# ... existing code ...`) a line says itself that it replaces
others, and is refused wherever it is.  Bare dots, and a comment with such a word, are refused at
the edge of a change that takes at least two lines more away than it writes.  A line that the file
or the quote has already means itself.  Documents show code, which elides as a matter of
course: of them only a new file of nothing else is refused.

New text that a model escaped once too often is recognised by its result.  Where a quote is found
only with its escapes undone, both halves lose theirs on the way (see `resolve.levels`).  Two
kinds of new text have no quote that could tell: the files that the same response creates, and a
replacement that alone is escaped, which shows only in a file that does not parse with `\n` and `\"`
in its lines and does without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from patchq.core.model.ops import (
    Create,
    Op,
    Replace,
    ReplaceText,
    Write,
    halves,
)
from patchq.core.model.values import (  # fmt: skip
    Edit,
    EditOutcome,
    ErrorProblem,
    FileChange,
    Hunk,
    Plan,
    Tree,
)
from patchq.core.plan.syntax import unparsable
from patchq.core.plan.targets import EditRefused, PlanRules
from patchq.core.resolve.levels import STRIPPED, is_escaped_line, unescape, unescape_text
from patchq.core.resolve.places import find_lines
from patchq.core.text.languages import is_document, named_fence
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import Text


def check_escapes(edit: Edit, text: str) -> None:
    """Raise `EditRefused` for a new file whose line breaks are all written as escapes."""
    if is_escaped_line(text):
        raise EditRefused(
            ErrorProblem(
                "response.unreadable_edit",
                f"edit {edit.id} would make {edit.path} of a single line with escaped line breaks",
                "write the new file's lines as lines, without backslash escapes",
                edit=edit.id,
                line=edit.at[0],
            )
        )


def check_size(edit: Edit, op: Write, rules: PlanRules, base: Text) -> None:
    """Raise `EditRefused` if a write loses too many lines or may be an excerpt."""
    before = [line.strip() for line in base.contents if line.strip()]
    after = [line.strip().encode() for line in op.text.split("\n") if line.strip()]
    if op.quoting and not _keeps(before, after):
        raise EditRefused(_doubtful(edit, "an excerpt of it"))
    if len(after) < len(before) * rules.shrink:
        raise EditRefused(
            ErrorProblem(
                "edit.shrinks",
                f"edit {edit.id} would leave {len(after)} of the {len(before)} lines of "
                f"{edit.path}",
                "send the whole file, or quote the lines to delete",
                edit=edit.id,
                path=edit.path,
            )
        )


def shown(
    edits: Sequence[Edit], outcomes: Sequence[EditOutcome], tree: Tree
) -> Iterator[ErrorProblem]:
    """Yield an error for each whole file that the response may only show.

    One such file that is the same as on the base puts the others in doubt.
    """
    files = [
        (edit, outcome)
        for edit, outcome in zip(edits, outcomes, strict=True)
        if isinstance(edit.op, Write) and edit.op.quoting and tree.entry(edit.path)
    ]
    same = next((edit for edit, outcome in files if outcome.state == "already_applied"), None)
    for edit, outcome in files if same else ():
        if same and outcome.state == "applied":
            yield _doubtful(edit, f"an older one, as {same.path} is only shown")


def _doubtful(edit: Edit, what: str) -> ErrorProblem:
    """Return the error of a block that may not be its file's new text."""
    return ErrorProblem(
        "response.unreadable_edit",
        f"edit {edit.id} may be the new text of {edit.path}, or {what}",
        "send the lines that change as an edit that quotes them; to write the whole file, put its "
        f"path into the fence's info: {named_fence(edit.path)}",
        edit=edit.id,
        path=edit.path,
        line=edit.at[0],
    )


def _keeps(before: Sequence[bytes], after: Sequence[bytes]) -> bool:
    """Return True if the new lines keep most of the old ones, in order.

    That is the first, the last and half of the others, or nine in ten of all.
    """
    if not before:
        return True
    changed = sum(a1 - a0 for a0, a1, _, _ in line_diff(before, after))
    kept = len(before) - changed
    ends = bool(after) and before[0] == after[0] and before[-1] == after[-1]
    others = kept - min(2, len(before))
    return kept >= 0.9 * len(before) or (ends and others >= (len(before) - 2) / 2)


def check_encoding(edit: Edit, text: Text, hunks: Sequence[Hunk]) -> None:
    """Raise `EditRefused` for new text beyond ASCII in a file that is not UTF-8."""
    if all(hunk.new.isascii() for hunk in hunks) or text.is_utf8:
        return
    own = set(text.contents)
    lines = (line.removesuffix(b"\r") for hunk in hunks for line in hunk.new.split(b"\n"))
    if not all(line.isascii() or line in own for line in lines):
        raise EditRefused(
            ErrorProblem(
                "file.encoding",
                f"{edit.path} is not UTF-8, and edit {edit.id} would write letters beyond ASCII "
                "into it",
                "keep the new lines to ASCII, or leave this file out",
                edit=edit.id,
                path=edit.path,
            )
        )


# ---------------------------------------------------------------- escapes


UNESCAPED = "unescaped"
_MOST_TRIED = 8
# The kinds of edits whose new text may be escaped where their quote is not.
_WRITING = (Replace, ReplaceText)
_ESCAPED_QUOTE, _BARE_QUOTE = re.compile(r"\\[\"]"), re.compile(r"(?<!\\)[\"]")

Planner = Callable[[Sequence[Edit]], Plan]


def settled(edits: Sequence[Edit], plan: Planner, judged: Callable[[str], bool]) -> Plan:
    """Return the plan of the edits, with mistaken escapes undone.

    `judged` returns True for a path whose file has to parse.
    """
    planned = plan(edits)
    if any(outcome.match == UNESCAPED for outcome in planned.edits):
        edits = [
            replace(edit, op=Create(unescape_text(edit.op.text)))
            if isinstance(edit.op, Create) and is_escaped_line(edit.op.text)
            else edit
            for edit in edits
        ]
        planned = plan(edits)
    escaped = _escaped(edits)
    for change in planned.changes if escaped else ():
        paths = dict.fromkeys([change.path, change.renamed_from])
        doubtful = [edit for path in paths for edit in escaped.get(path, ())]
        if doubtful and judged(change.path) and unparsable(change):
            edits, planned = _corrected(edits, doubtful, change, plan) or (edits, planned)
            escaped = _escaped(edits)
    return planned


def _escaped(edits: Sequence[Edit]) -> dict[str | None, list[Edit]]:
    escaped: dict[str | None, list[Edit]] = {}
    for edit in edits:
        if _plain(edit) is not edit:
            escaped.setdefault(edit.path, []).append(edit)
    return escaped


def _corrected(
    edits: Sequence[Edit], doubtful: Sequence[Edit], change: FileChange, plan: Planner
) -> tuple[Sequence[Edit], Plan] | None:
    """Return the edits and their plan, with the escapes undone that break the file.

    One edit is unescaped if it is the only one that so makes the file parse, all of them if no
    single one does.  None if neither helps, or several edits would.
    """
    alone = [[edit] for edit in doubtful] if 1 < len(doubtful) <= _MOST_TRIED else []
    good = [result for one in alone if (result := _parsing(edits, one, change, plan))]
    if not good:
        return _parsing(edits, doubtful, change, plan)
    return good[0] if len(good) == 1 else None


def _parsing(
    edits: Sequence[Edit], suspects: Sequence[Edit], change: FileChange, plan: Planner
) -> tuple[Sequence[Edit], Plan] | None:
    """Return the edits and their plan, with some unescaped, where the file so parses."""
    corrected = [_plain(edit) if edit in suspects else edit for edit in edits]
    planned = plan(corrected)
    after = next((other for other in planned.changes if other.path == change.path), None)
    if planned.refused or after is None or unparsable(after):
        return None
    ids = {edit.id for edit in suspects}
    outcomes = tuple(replace(o, match=UNESCAPED) if o.id in ids else o for o in planned.edits)
    return corrected, replace(planned, edits=outcomes)


def _plain(edit: Edit) -> Edit:
    """Return the edit with its new text unescaped, or unchanged.

    It stays as it is if nothing is escaped, or some of its quotes are not.
    """
    op: Op = edit.op
    if not isinstance(op, _WRITING) or "\\" not in op.new:
        return edit
    if isinstance(op, Replace):
        new = unescape_text(op.new)
    else:
        new = unescape(op.new.encode("utf-8", "surrogateescape")).decode(errors="surrogateescape")
    if new == op.new or (_ESCAPED_QUOTE.search(op.new) and _BARE_QUOTE.search(op.new)):
        return edit
    return replace(edit, op=replace(op, new=new))


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


def check_elision(edit: Edit, rules: PlanRules, base: Text | None) -> None:
    """Raise `EditRefused` for a new line that says it replaces other lines.

    In a new file, without a `base`, also for a text of nothing but such lines.
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


def check_elided_changes(edit: Edit, rules: PlanRules, text: Text, hunks: Sequence[Hunk]) -> None:
    """Raise `EditRefused` for a placeholder line that replaces lines the edit deletes."""
    if not rules.elision or is_document(edit.path):
        return
    old = halves(edit.op)[0]
    for hunk in hunks:
        for line, count in _suspects(edit.path, text, hunk):
            if not _is_known(line, old, text):
                raise _refused(edit, line, f", {count} lines of the file")


def _has_dots(text: str) -> bool:
    return "..." in text or "\u2026" in text


def _is_nothing_else(path: str, text: str) -> str | None:
    """Return the first line of a text of placeholder lines only."""
    lines = [line for line in text.split("\n") if line.strip()]
    elided = bool(lines) and all(_SAYS.search(line) or _stands_for(path, line) for line in lines)
    return lines[0] if elided else None


def _stands_for(path: str, line: str) -> bool:
    """Return True if the line is a placeholder for omitted lines."""
    if line.strip() in _DOTS:
        return not path.endswith(_DOTS_ARE_CODE)
    comment = _COMMENT.fullmatch(line)
    words = [word.lower() for word in _WORD.findall(comment["text"])] if comment else []
    left = _LEFT.intersection(words)
    return bool(left) and len(words) - len(left) <= _MOST_OTHERS


def _suspects(path: str, text: Text, hunk: Hunk) -> Iterator[tuple[str, int]]:
    if text.whole[hunk.start : hunk.end].count(b"\n") < 2 or not _SIGN.search(hunk.new):
        return  # one line that is written takes the place of three at least
    old = text.whole[hunk.start : hunk.end].decode("utf-8", "surrogateescape").split("\n")
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
            f"edit {edit.id} would write a line into {edit.path} that replaces others{what}: "
            f"{line.strip()[:99]!r}",
            "write every line out, or leave unchanged lines out of both halves",
            edit=edit.id,
            path=edit.path,
        )
    )


def _is_known(line: str, old: str, base: Text | None) -> bool:
    if any(line.strip() == other.strip() for other in old.split("\n")):
        return True
    sought = [line.strip().encode("utf-8", "surrogateescape")]
    return base is not None and any(find_lines(base, sought, STRIPPED))
