"""One writer for each form in which a response may state its changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from bench.corpus.rewrites.tasks import Change, Task, lines_of

LANGUAGES = {
    ".py": "python", ".js": "javascript", ".c": "c", ".rs": "rust", ".go": "go", ".md": "markdown",
    ".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".html": "html", ".rst": "rst", ".css": "css",
}  # fmt: skip


def language(path: str) -> str:
    return LANGUAGES.get(PurePosixPath(path).suffix, "text")


@dataclass(frozen=True, slots=True)
class PathStyle:
    """How a response writes its paths."""

    spell: Callable[[str], str] = str
    """The path itself, as in `./x` or an absolute one."""
    line: Callable[[str], str] = str
    """The line that names it above an edit, where the form has such a line."""


AS_IT_IS = PathStyle()


Family = Literal["blocks", "find", "patch", "mail", "calls", "json", "api", "files"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form, and what it can express."""

    name: str
    write: Callable[[Sequence[Change], PathStyle], str]
    family: Family
    """`blocks` have a path line over each edit; `calls` and `json` are JSON that may stand in text,
    `api` is JSON that is the whole response; `files` are written whole."""
    creates: bool = True
    deletes: bool = False

    @property
    def in_text(self) -> bool:
        """Whether text may stand beside the edits."""
        return self.family not in {"api", "mail"}

    def fits(self, task: Task) -> bool:
        """Whether it can express all of a task; as whole files, where none is deleted or fenced."""
        if self.family == "files":
            return task.fits_files
        return all(self.expresses(change) for change in task.changes)

    def expresses(self, change: Change) -> bool:
        if change.old is None:
            return self.creates
        return self.deletes if change.new is None else True


def _search_replace(changes: Sequence[Change], style: PathStyle) -> str:
    return "\n".join(f"{style.line(style.spell(c.path))}\n{_block(c)}" for c in changes)


def _block(c: Change) -> str:
    if c.new is None:
        return "<<<<<<< DELETE\n>>>>>>> DELETE\n"
    return f"<<<<<<< SEARCH\n{c.old or ''}=======\n{c.new}>>>>>>> REPLACE\n"


def _fenced(changes: Sequence[Change], style: PathStyle) -> str:
    return "\n".join(
        f"{style.line(style.spell(c.path))}\n```{language(c.path)}\n{_block(c)}```\n"
        for c in changes
    )


def _dashes(changes: Sequence[Change], style: PathStyle) -> str:
    parts = []
    for c in changes:
        halves = f"------- SEARCH\n{c.old or ''}=======\n{c.new}+++++++ REPLACE\n"
        parts.append(f"{style.line(style.spell(c.path))}\n{halves}")
    return "\n".join(parts)


def _find_replace(changes: Sequence[Change], style: PathStyle) -> str:
    parts = []
    for number, c in enumerate(changes, 1):
        info = language(c.path)
        parts.append(
            f"FILE: {style.spell(c.path)}\n\n### CHANGE {number}: as asked\nFIND:\n```{info}\n"
            f"{c.old}```\n\nREPLACE WITH:\n```{info}\n{c.new}```\n"
        )
    return "\n".join(parts)


def _ordered(changes: Sequence[Change]) -> dict[str, list[Change]]:
    files: dict[str, list[Change]] = {}
    for c in changes:
        files.setdefault(c.path, []).append(c)
    return {path: sorted(found, key=lambda c: c.at) for path, found in files.items()}


def _body(c: Change) -> str:
    """The lines of a hunk: what both halves share at their ends is context."""
    old, new = lines_of(c.old or ""), lines_of(c.new or "")
    lead = 0
    while lead < min(len(old), len(new)) and old[lead] == new[lead]:
        lead += 1
    tail = 0
    while tail < min(len(old), len(new)) - lead and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return "".join(
        [" " + line for line in old[:lead]]
        + ["-" + line for line in old[lead : len(old) - tail]]
        + ["+" + line for line in new[lead : len(new) - tail]]
        + [" " + line for line in old[len(old) - tail :]]
    )


def _v4a(changes: Sequence[Change], style: PathStyle) -> str:
    parts = []
    for path, found in _ordered(changes).items():
        name, first = style.spell(path), found[0]
        if first.old is None:
            lines = "".join("+" + line for line in lines_of(first.new or ""))
            parts.append(f"*** Add File: {name}\n{lines}")
        elif first.new is None:
            parts.append(f"*** Delete File: {name}\n")
        else:
            parts.append(f"*** Update File: {name}\n" + "".join(f"@@\n{_body(c)}" for c in found))
    return "*** Begin Patch\n" + "".join(parts) + "*** End Patch\n"


def _diff(changes: Sequence[Change], style: PathStyle, git: bool = False) -> str:
    parts = []
    for path, found in _ordered(changes).items():
        name, first, shift = style.spell(path), found[0], 0
        head = f"diff --git a/{name} b/{name}\n" if git else ""
        size = len(lines_of((first.new if first.old is None else first.old) or ""))
        if first.old is None:
            head += "new file mode 100644\n" if git else ""
            lines = "".join("+" + line for line in lines_of(first.new or ""))
            parts.append(f"{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{size} @@\n{lines}")
            continue
        if first.new is None:
            head += "deleted file mode 100644\n" if git else ""
            lines = "".join("-" + line for line in lines_of(first.old))
            parts.append(f"{head}--- a/{name}\n+++ /dev/null\n@@ -1,{size} +0,0 @@\n{lines}")
            continue
        hunks = []
        for c in found:
            old, new = len(lines_of(c.old or "")), len(lines_of(c.new or ""))
            hunks.append(f"@@ -{c.at + 1},{old} +{c.at + 1 + shift},{new} @@\n{_body(c)}")
            shift += new - old
        parts.append(f"{head}--- a/{name}\n+++ b/{name}\n" + "".join(hunks))
    return "".join(parts)


def _diff_fence(changes: Sequence[Change], style: PathStyle) -> str:
    return f"```diff\n{_diff(changes, style)}```\n"


def _mail(changes: Sequence[Change], style: PathStyle) -> str:
    return (
        "From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\n"
        "From: Ada Agent <ada@example.org>\nDate: Sat, 1 Nov 2025 12:00:00 +0000\n"
        f"Subject: [PATCH] Change as asked\n\n---\n\n{_diff(changes, style, git=True)}-- \n2.39.5\n"
    )


def calls(changes: Sequence[Change], style: PathStyle) -> list[tuple[str, dict[str, str]]]:
    """The calls of Claude Code's tools that say the changes."""
    return [
        ("Write", {"file_path": style.spell(c.path), "content": c.new or ""})
        if c.old is None
        else (
            "Edit",
            {
                "file_path": style.spell(c.path),
                "old_string": c.old or "",
                "new_string": c.new or "",
            },
        )
        for c in changes
    ]


def _edit_list(changes: Sequence[Change], style: PathStyle) -> str:
    values = [
        {"file_path": style.spell(c.path), "old_string": c.old or "", "new_string": c.new}
        for c in changes
    ]
    return json.dumps(values, indent=1) + "\n"


def _json_lines(changes: Sequence[Change], style: PathStyle) -> str:
    return "".join(
        json.dumps({"path": style.spell(c.path), "old_str": c.old or "", "new_str": c.new}) + "\n"
        for c in changes
    )


def _messages(changes: Sequence[Change], style: PathStyle) -> str:
    content: list[object] = [{"type": "text", "text": "I make the change."}]
    content += [
        {"type": "tool_use", "id": f"toolu_{number:02}", "name": name, "input": words}
        for number, (name, words) in enumerate(calls(changes, style))
    ]
    return json.dumps(
        {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
         "stop_reason": "tool_use", "stop_sequence": None}
    )  # fmt: skip


def _chat(changes: Sequence[Change], style: PathStyle) -> str:
    tools = [
        {"id": f"call_{number}", "type": "function", "function": {
            "name": "write_file" if c.old is None else "replace",
            "arguments": json.dumps(
                {"file_path": style.spell(c.path), "content": c.new}
                if c.old is None
                else {"file_path": style.spell(c.path), "old_string": c.old, "new_string": c.new}
            )}}
        for number, c in enumerate(changes)
    ]  # fmt: skip
    message = {"role": "assistant", "content": None, "tool_calls": tools}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]})


def _indexed(changes: Sequence[Change], style: PathStyle) -> str:
    edits = [
        {"id": f"e{number}", "type": "modification", "file": style.spell(c.path), "target": c.old,
         "replacement": c.new, "confidence": 0.95, "reason": "as asked"}
        for number, c in enumerate(changes, 1)
    ]  # fmt: skip
    return json.dumps({"edits": edits, "summary": "Change as asked"}, indent=1) + "\n"


def _contextual(changes: Sequence[Change], style: PathStyle) -> str:
    edits = []
    for number, c in enumerate(changes, 1):
        lines = lines_of(c.old or "")
        before, target = (lines[0], "".join(lines[1:])) if len(lines) > 1 else ("", lines[0])
        new = c.new or ""
        if before and not new.startswith(before):
            before, target = "", c.old or ""
        edits.append(
            {"id": f"c{number}", "type": "modification", "file": style.spell(c.path),
             "searchPattern": {"before": before, "target": target, "after": ""},
             "replacement": new[len(before):], "confidence": 0.9, "reason": "as asked"}
        )  # fmt: skip
    return json.dumps({"contextualEdits": edits}, indent=1) + "\n"


def _whole(changes: Sequence[Change], style: PathStyle) -> str:
    return "\n".join(
        f"````{language(c.path)}:{style.spell(c.path)}\n{c.new}````\n" for c in changes
    )


def _file_marker(changes: Sequence[Change], style: PathStyle) -> str:
    return "\n".join(
        f"FILE: {style.spell(c.path)}\n````{language(c.path)}\n{c.new}````\n" for c in changes
    )


FORMS = (
    Form("search_replace", _search_replace, "blocks", deletes=True),
    Form("search_replace_fenced", _fenced, "blocks", deletes=True),
    Form("search_replace_dashes", _dashes, "blocks"),
    Form("find_replace", _find_replace, "find", creates=False),
    Form("v4a", _v4a, "patch", deletes=True),
    Form("unified_diff", _diff, "patch", deletes=True),
    Form("diff_fence", _diff_fence, "patch", deletes=True),
    Form("mail", _mail, "mail", deletes=True),
    Form("edit_list", _edit_list, "calls"),
    Form("json_lines", _json_lines, "calls"),
    Form("indexed", _indexed, "json", creates=False),
    Form("contextual", _contextual, "json", creates=False),
    Form("messages", _messages, "api"),
    Form("chat", _chat, "api"),
    Form("whole_file", _whole, "files"),
    Form("file_marker", _file_marker, "files"),
)
