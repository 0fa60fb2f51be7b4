"""The size of a diff: its files, and the lines that it adds and deletes."""

from __future__ import annotations

import re

from patchq.gate.report.schema import SizeEntry

_RANGES = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@$", re.MULTILINE)
_FILE = re.compile(r"^diff --git .*$", re.MULTILINE)


def size(diff: str) -> SizeEntry | None:
    """Return the size of a diff that `unified` made; None for no diff.

    Lines of a file stand behind a sign, so a line that begins otherwise is a header, and one that
    begins with a blank is context; what is added and deleted follows from the hunks' ranges.
    """
    if not diff:
        return None
    ranges = [(int(old or 1), int(new or 1)) for old, new in _RANGES.findall(diff)]
    context = diff.count("\n ")
    return SizeEntry(
        files=len(set(_FILE.findall(diff))),
        added=sum(new for _, new in ranges) - context,
        deleted=sum(old for old, _ in ranges) - context,
    )
