"""Numbers behind ids that several batches want."""

from __future__ import annotations

import itertools
import os
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
    """Return the wanted id, or one with a number, that is neither given nor barred."""
    first = _first_free(wanted, is_given)
    return next(id for n in itertools.count(first) if not is_barred(id := numbered(wanted, n)))


def _first_free(wanted: str, is_given: Callable[[str], bool]) -> int:
    """Return a number from which on none is given, found in a logarithmic number of looks.

    Those below it may have gaps, which stay.
    """
    used, found = 0, 1
    while is_given(numbered(wanted, found)):
        used, found = found, found * 2
    while found - used > 1:
        middle = (used + found) // 2
        if is_given(numbered(wanted, middle)):
            used = middle
        else:
            found = middle
    return found
