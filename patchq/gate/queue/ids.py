"""Numbers behind ids that several batches want."""

from __future__ import annotations

import itertools
import os
from bisect import bisect_left
from collections.abc import Callable

from patchq.core.model.names import MAX_ID_BYTES


def numbered(wanted: str, number: int) -> str:
    """Return the id with the number behind it; the first has none."""
    if number == 1:
        return wanted
    suffix = f"-{number}"
    room = MAX_ID_BYTES - len(suffix)
    return os.fsencode(wanted)[:room].decode("utf-8", "ignore") + suffix


def free(wanted: str, is_given: Callable[[str], bool], is_barred: Callable[[str], bool]) -> str:
    """Return the wanted id, or one with a number, that is neither given nor barred.

    It is found in a logarithmic number of looks; gaps in the numbers before it stay.
    """

    def is_free(number: int) -> bool:
        return not is_given(numbered(wanted, number))

    most = next(n for n in map((2).__pow__, itertools.count()) if is_free(n))
    first = bisect_left(range(most), True, lo=max(1, most // 2), key=is_free)
    return next(id for n in itertools.count(first) if not is_barred(id := numbered(wanted, n)))
