"""The unified diff of a batch, in git's form.

It is written from the bytes before and after; `git apply` makes exactly the latter from the former.
Bytes that are not UTF-8 travel as surrogates (`surrogateescape`), so encoding the text that way
gives the patch back byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from patchq.core.model.values import FileChange, LineHunk
from patchq.core.text import binary_patch
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import split_lines

_CONTEXT = 3
_BINARY_PROBE = 8000
_LINK = "120000"
_UNENDED = "\n\\ No newline at end of file\n"
_USUAL = re.compile(r"[\w./ -]*", re.ASCII)
_ESCAPES = {
    7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r",
    ord('"'): '\\"', ord("\\"): "\\\\",
}  # fmt: skip


def unified(changes: Sequence[FileChange], as_bytes: Collection[str] = ()) -> str:
    """Return the changes as one git-style diff, in order of their paths.

    The files at the paths `as_bytes` are shown by their bytes, whatever they hold.  Of another one
    that is binary the diff only says that it differs.  A file that becomes a link, or was one, is
    one that goes and one that comes; only shown by its bytes it is one that changes its mode.
    """
    in_order = sorted(changes, key=lambda change: change.path)
    return "".join(_file(change, change.path in as_bytes) for change in in_order)


def _file(change: FileChange, as_bytes: bool) -> str:
    if change.was_link is not None and not as_bytes:  # two files, as git has it
        came = replace(change, before=None, was_link=None)
        went = replace(change, after=None, link=change.from_link, was_link=None)
        return _file(replace(went, executable=False), False) + _file(came, False)
    before, after = change.before or b"", change.after or b""
    old, new = f"a/{change.renamed_from or change.path}", f"b/{change.path}"
    header = _extended(change)
    if before == after and not header:
        return ""
    parts = [f"diff --git {_quoted(old)} {_quoted(new)}\n", *header]
    if as_bytes:
        parts += _literal(change)
    elif before != after:
        old = "/dev/null" if change.before is None else old
        new = "/dev/null" if change.after is None else new
        if b"\0" in before[:_BINARY_PROBE] + after[:_BINARY_PROBE]:  # git's own test
            parts.append(f"Binary files {_quoted(old)} and {_quoted(new)} differ\n")
        else:
            if change.link and None not in (change.before, change.after):
                ids = (binary_patch.blob_id(side) for side in (before, after))
                parts.append(f"index {'..'.join(ids)} {_LINK}\n")
            parts.append(f"--- {_named(old)}\n+++ {_named(new)}\n")
            parts += _hunks(split_lines(before), split_lines(after))
    return "".join(parts)


def _literal(change: FileChange) -> Iterator[str]:
    if change.before == change.after and change.was_link is None:
        return
    sides = (change.before, change.after)
    ids = (binary_patch.blob_id(side) if side is not None else "0" * 40 for side in sides)
    stays = change.link and None not in sides and change.was_link is None
    mode = f" {_LINK}" if stays else ""
    yield f"index {'..'.join(ids)}{mode}\n{binary_patch.HEADER}\n"
    yield binary_patch.encode(change.after or b"")


def _extended(change: FileChange) -> list[str]:
    """Return the header lines about the file as a whole."""
    mode = _mode(change.executable, change.link)
    if change.after is None:
        return [f"deleted file mode {mode}\n"]
    modes = list[str]()
    if change.was_executable is not None or change.was_link is not None:
        was = _mode(bool(change.was_executable), change.from_link)
        modes = [f"old mode {was}\n", f"new mode {mode}\n"]
    if change.renamed_from is not None:
        alike = ["similarity index 100%\n"] if change.before == change.after else []
        source, path = _quoted(change.renamed_from), _quoted(change.path)
        return [*modes, *alike, f"rename from {source}\n", f"rename to {path}\n"]
    return [f"new file mode {mode}\n"] if change.before is None else modes


def _mode(executable: bool, link: bool) -> str:
    return _LINK if link else "100755" if executable else "100644"


def _hunks(a: list[bytes], b: list[bytes]) -> Iterator[str]:
    for group in _groups(line_diff(a, b)):
        before = min(_CONTEXT, group[0][0])
        after = min(_CONTEXT, len(a) - group[-1][1])
        a0, a1 = group[0][0] - before, group[-1][1] + after
        b0, b1 = group[0][2] - before, group[-1][3] + after
        yield f"@@ -{_range(a0, a1)} +{_range(b0, b1)} @@\n"
        at = a0
        for start, end, new_start, new_end in group:
            yield _lines(b" ", a[at:start])
            yield _lines(b"-", a[start:end])
            yield _lines(b"+", b[new_start:new_end])
            at = end
        yield _lines(b" ", a[at:a1])


def _groups(blocks: list[LineHunk]) -> list[list[LineHunk]]:
    groups: list[list[LineHunk]] = []
    for block in blocks:
        if groups and block[0] - groups[-1][-1][1] <= 2 * _CONTEXT:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def _range(start: int, end: int) -> str:
    """Return a range of lines as in a hunk's header.

    An empty one names the line before it.
    """
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _lines(sign: bytes, lines: Sequence[bytes]) -> str:
    text = b"".join([sign + line for line in lines]).decode("utf-8", "surrogateescape")
    return text if not lines or lines[-1].endswith(b"\n") else text + _UNENDED


def _named(path: str) -> str:
    """Return the path for a `---` or `+++` line.

    A tab ends one that holds blanks.
    """
    return _quoted(path) + ("\t" if any(map(str.isspace, path)) else "")


def _quoted(path: str) -> str:
    """Return the path as git prints it.

    An unusual one is in double quotes with octal escapes.
    """
    if _USUAL.fullmatch(path):
        return path
    quoted = "".join(
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in path.encode("utf-8", "surrogateescape")
    )
    return path if quoted == path else f'"{quoted}"'
