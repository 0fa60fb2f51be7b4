"""An intent in the words of a response: one writer for each format that a storm uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from bench.storm.intent import Edit, Intent, Op, lines_of

_LANGUAGES = {".py": "python", ".js": "javascript", ".c": "c", ".rs": "rust", ".go": "go"}
_EVERY: frozenset[Op] = frozenset({"replace", "create", "delete", "rename"})
SAYS: dict[str, frozenset[Op]] = {
    "search_replace": _EVERY,
    "unified_diff": _EVERY,
    "v4a": _EVERY,
    "edit_calls": frozenset({"replace", "create"}),
    "whole_file": frozenset({"write", "create"}),
}
"""What each format can say."""


def phrase(intent: Intent, target: str | None = None) -> tuple[str, bytes]:
    """The response's file suffix and its bytes; `mixed` gives every file a format of its own."""
    said = {"id": intent.name, "agent": intent.name.partition("-")[0], "target": target}
    said["base"] = intent.base if intent.declared else None
    head = "".join(["---\n", *(f"{key}: {said[key]}\n" for key in said if said[key]), "---\n"])
    files = list(dict.fromkeys(edit.path for edit in intent.edits))
    parts = []
    for number, path in enumerate(files):
        edits = [edit for edit in intent.edits if edit.path == path]
        form = _form_of(number, edits) if intent.form == "mixed" else intent.form
        parts.append((form, edits))
    if intent.form == "edit_calls":
        return ".json", (head + _calls(intent.edits)).encode()
    if intent.form == "v4a":
        return ".md", (head + _v4a([_v4a_file(edits) for _, edits in parts])).encode()
    return ".md", (head + "\n".join(_WRITERS[form](edits) for form, edits in parts)).encode()


def _form_of(number: int, edits: Sequence[Edit]) -> str:
    ops = {edit.op for edit in edits}
    able = [form for form in ("search_replace", "unified_diff", "v4a") if ops <= SAYS[form]]
    return able[number % len(able)] if able else "whole_file"


def _search_replace(edits: Sequence[Edit]) -> str:
    parts = []
    for edit in sorted(edits, key=lambda edit: edit.op == "rename"):
        if edit.op == "delete":
            parts.append(f"{edit.path}\n<<<<<<< DELETE\n>>>>>>> DELETE\n")
        elif edit.op == "rename":
            parts.append(f"{edit.path}\n<<<<<<< RENAME\n{edit.new}\n>>>>>>> RENAME\n")
        else:
            halves = f"<<<<<<< SEARCH\n{edit.old}=======\n{edit.new}>>>>>>> REPLACE\n"
            parts.append(f"{edit.path}\n{halves}")
    return "\n".join(parts)


def _body(edit: Edit) -> list[str]:
    """The lines of a hunk: what both halves share at their ends is context."""
    old, (lo, hi, new) = lines_of(edit.old), edit.span()
    lo, hi = lo - edit.at, hi - edit.at
    return [
        *(" " + line for line in old[:lo]),
        *("-" + line for line in old[lo:hi]),
        *("+" + line for line in new),
        *(" " + line for line in old[hi:]),
    ]


def _whole(sign: str, text: str) -> str:
    return "".join(sign + line for line in lines_of(text))


def _diff(edits: Sequence[Edit]) -> str:
    path = edits[0].path
    to = next((edit.new for edit in edits if edit.op == "rename"), path)
    head = f"diff --git a/{path} b/{to}\n"
    first, size = edits[0], len(lines_of(edits[0].old or edits[0].new))
    if first.op == "create":
        head += f"new file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{size} @@\n"
        return head + _whole("+", first.new)
    if first.op == "delete":
        head += f"deleted file mode 100644\n--- a/{path}\n+++ /dev/null\n@@ -1,{size} +0,0 @@\n"
        return head + _whole("-", first.old)
    hunks, shift = [], 0
    for edit in sorted((e for e in edits if e.op == "replace"), key=lambda edit: edit.at):
        old, new = len(lines_of(edit.old)), len(lines_of(edit.new))
        start = edit.at + 1
        hunks.append(f"@@ -{start},{old} +{start + shift},{new} @@\n" + "".join(_body(edit)))
        shift += new - old
    if to != path:
        alike = 95 if hunks else 100
        head += f"similarity index {alike}%\nrename from {path}\nrename to {to}\n"
    return head + (f"--- a/{path}\n+++ b/{to}\n" + "".join(hunks) if hunks else "")


def _v4a(files: Sequence[str]) -> str:
    return "*** Begin Patch\n" + "".join(files) + "*** End Patch\n"


def _v4a_file(edits: Sequence[Edit]) -> str:
    first = edits[0]
    if first.op == "create":
        return f"*** Add File: {first.path}\n" + _whole("+", first.new)
    if first.op == "delete":
        return f"*** Delete File: {first.path}\n"
    moves = [f"*** Move to: {edit.new}\n" for edit in edits if edit.op == "rename"]
    chunks = [
        "@@\n" + "".join(_body(edit))
        for edit in sorted(edits, key=lambda edit: edit.at)
        if edit.op == "replace"
    ]
    return f"*** Update File: {first.path}\n" + "".join([*moves, *chunks])


def _calls(edits: Sequence[Edit]) -> str:
    return json.dumps(
        [
            {"file_path": edit.path, "old_string": edit.old, "new_string": edit.new}
            for edit in edits
        ],
        indent=1,
    )


def _files(edits: Sequence[Edit]) -> str:
    return "\n".join(
        f"```{_LANGUAGES.get(PurePosixPath(edit.path).suffix, 'text')}:{edit.path}\n{edit.new}```\n"
        for edit in edits
    )


_WRITERS: dict[str, Callable[[Sequence[Edit]], str]] = {
    "search_replace": _search_replace,
    "unified_diff": _diff,
    "v4a": lambda edits: _v4a([_v4a_file(edits)]),
    "whole_file": _files,
}
