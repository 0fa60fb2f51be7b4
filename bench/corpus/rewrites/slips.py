"""The slips that models make in quotes, as one table: each damages a change that stays certain.

`SLIPS` names each slip, what it makes of a change (None where it cannot), and the families of forms
that cannot express it.  A slip that keeps the change's meaning has to come out exact, byte for
byte; one that takes it away has to be refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.corpus.rewrites.tasks import Change, lines_of, stands

Damage = Callable[[Change, str], Change | None]
"""What becomes of a change of a file with that text."""
SIGNED = frozenset({"patch", "mail"})
"""The families whose lines stand behind signs."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A slip, and whether the change still means one thing."""

    damage: Damage
    certain: bool = True
    barred: frozenset[str] = SIGNED


def _lines(change: Change, alter: Callable[[str], str]) -> Change:
    """Return the change with each filled line of both halves altered."""
    old, new = (
        "".join(alter(line) if line.strip() else line for line in lines_of(half or ""))
        for half in (change.old, change.new)
    )
    return replace(change, old=old, new=new)


def _is_long(change: Change) -> bool:
    return change.replaces and len(lines_of(change.old or "")) > 1


def _trailing(change: Change, _: str) -> Change | None:
    first, rest = (change.old or "").partition("\n")[::2]
    return replace(change, old=f"{first}  \n{rest}") if _is_long(change) and first.strip() else None


def _dedented(change: Change, text: str) -> Change | None:
    both = lines_of((change.old or "") + (change.new or ""))
    if not _is_long(change) or not all(x.startswith("  ") or not x.strip() for x in both):
        return None
    found = _lines(change, lambda line: line[2:])
    # One that stands so, behind its line's indentation, is meant literally.
    return None if (found.old or "") in text else found


def _indented(change: Change, _: str) -> Change | None:
    return _lines(change, lambda line: "    " + line) if _is_long(change) else None


def _numbered(change: Change, _: str) -> Change | None:
    if not _is_long(change):
        return None
    old, new = (
        "".join(f"{n} | {line}" for n, line in enumerate(lines_of(half or ""), change.at + 1))
        for half in (change.old, change.new)
    )
    return replace(change, old=old, new=new)


def _blank_above(change: Change, text: str) -> Change | None:
    above = lines_of(text)[change.at - 1] if change.at else "x"
    if not change.replaces or not above.strip():
        return None
    return replace(change, old="\n" + (change.old or ""), new="\n" + (change.new or ""))


def _curly(change: Change, _: str) -> Change | None:
    old, new = lines_of(change.old or ""), lines_of(change.new or "")
    able = [x for x in old if "'" in x and old.count(x) == new.count(x) == 1]
    if not able or not _is_long(change):
        return None
    curly = {able[0]: able[0].replace("'", "\u2019")}
    old, new = ([curly.get(x, x) for x in half] for half in (old, new))
    return replace(change, old="".join(old), new="".join(new))


def _misremembered(change: Change, text: str) -> Change | None:
    word = re.search(r"[A-Za-z]{4,}", change.old or "")
    # What the edit would give must not stand there: that would be an edit applied already.
    if not change.replaces or word is None or stands(change.new or "", text):
        return None
    old = change.old or ""
    return replace(change, old=old[: word.start()] + word[0][::-1] + "x" + old[word.end() :])


SLIPS: dict[str, Slip] = {
    "none": Slip(lambda change, _: change, barred=frozenset()),
    "trailing blanks": Slip(_trailing),
    "dedented": Slip(_dedented, barred=SIGNED | {"json"}),
    "indented further": Slip(_indented, barred=SIGNED | {"json"}),
    "line numbers": Slip(_numbered, barred=SIGNED | {"json"}),
    "a blank line too many": Slip(_blank_above, barred=SIGNED | {"json", "calls", "api"}),
    "curly quotes": Slip(_curly),
    "a word misremembered": Slip(_misremembered, certain=False, barred=frozenset()),
}
