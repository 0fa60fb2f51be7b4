"""Encoded bytes in a program's output: base64, base32, hex, numbers; and the output without them.

Words of a language and names in code keep to few patterns: small letters, capitals, humps, a
number behind them.  What an encoding makes of bytes keeps to none.  So each word counts for or
against by its length, and where enough speaks for an encoding, however it is broken into lines or
parts, the whole run is left out.  Characters or numbers one by one are a run as well.

This keeps what leaks by accident from being repeated.  Whoever means to pass something on can spell
it in words, so it is no wall: what a hook can read is.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z0-9]+")
_NATURAL = re.compile(
    r"0\d{0,5}|[1-9]\d*|(?:0x)?[0-9a-fA-F]{1,3}|[A-Z]*(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})*[a-z]?\d{0,3}|[A-Za-z]\d{0,2}"
    r"|\d{1,4}[a-z]{1,3}"
)
_LONGEST_WORD = 40
# How many characters of an encoding tell it from a chance: more than a commit's id has.
_LEAST = 44
# Characters or numbers by themselves, a dump's columns too; nothing is tried twice.
_ONE_BY_ONE = re.compile(
    r"(?<![A-Za-z0-9])(?>(?:0x|0o|x|U\+)?(?:[0-9A-Fa-f]{1,3}|[A-Za-z0-9+/=])(?![A-Za-z0-9])"
    r"[^A-Za-z0-9]{1,6}+(?:E {2,4}+)?){32,}+"
    r"|(?>(?:\\x|%)[0-9A-Fa-f]{2}){24,}+"
    r"|(?<![A-Za-z0-9])(?>[0-9A-Fa-f]{4}[ :]){7,}+"
)
_GAP = 24  # so few characters between two runs belong to them
_LEFT_OUT = "(left out: {} characters that look encoded)"


def without_encoded(text: str) -> str:
    """The text, with a sentence in place of each run of encoded bytes."""
    runs: list[list[int]] = []
    one_by_one = ((match.start(), match.end()) for match in _ONE_BY_ONE.finditer(text))
    for start, end in sorted([*one_by_one, *_runs(text)]):
        if runs and start <= runs[-1][1] + _GAP:
            runs[-1][1] = max(runs[-1][1], end)
        else:
            runs.append([start, end])
    found, at = [], 0
    for start, end in runs:
        found += [text[at:start], _LEFT_OUT.format(end - start)]
        at = end
    return "".join([*found, text[at:]])


def _runs(text: str) -> list[tuple[int, int]]:
    """Return the ranges of encoded text: the stretches of words with the highest sums."""
    found: list[tuple[int, int]] = []
    start = end = total = best = 0
    for word in _WORD.finditer(text):
        weight = _weight(word[0])
        if total <= 0 and weight > 0:
            start, total, best = word.start(), 0, 0
        total += weight
        if weight > 0 and total >= best:
            best, end = total, word.end()
        if total <= 0 or total < best - _LEAST:
            if best >= _LEAST:
                found.append((start, end))
            total = best = 0
    if best >= _LEAST:
        found.append((start, end))
    return found


def _weight(word: str) -> int:
    if len(word) > _LONGEST_WORD or not _NATURAL.fullmatch(word):
        return len(word)
    return -len(word)
