"""Code in colours: the lines of a file as runs of text, each with its kind, as Pygments names it.

The lexer sees a whole file, so that a line inside a long string is known as one.  Only the extra
`review` brings Pygments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from patchq.core.model.values import FileChange
from patchq.core.text.quote import decode

_MOST_BYTES = 300_000  # of a file; a longer one is shown without colours
# A kind (Pygments' short name of a token, like `k` or `s2`), or nothing, and the text.
Run = tuple[str, str]


@lru_cache(maxsize=128)
def lines(path: str, text: str) -> tuple[tuple[Run, ...], ...]:
    """The runs of each line; nothing for a file that is long, or in no known language."""
    from pygments.lexers import get_lexer_for_filename
    from pygments.token import STANDARD_TYPES
    from pygments.util import ClassNotFound

    if len(text) > _MOST_BYTES:
        return ()
    try:
        lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ()
    found: list[tuple[Run, ...]] = []
    line: list[Run] = []
    for token, value in lexer.get_tokens(text):
        name = next(filter(None, (STANDARD_TYPES.get(one) for one in reversed(token.split()))), "")
        for number, part in enumerate(value.split("\n")):
            if number:
                found.append(tuple(line))
                line = []
            if part:
                line.append((name, part))
    return (*found, tuple(line))


def sides(change: FileChange) -> tuple[Sequence[Sequence[Run]], Sequence[Sequence[Run]]]:
    """Return the runs of each line before a change, and after it."""
    old = lines(change.renamed_from or change.path, decode(change.before or b""))
    return old, lines(change.path, decode(change.after or b""))
