"""The commit message: what the agent says, then what patchq vouches for; and who says it.

The last paragraph is patchq's trailer block and nothing else.  Text that comes with the response
is stripped of what terminals and tools would act on: control and invisible characters are removed,
and lines that read as a trailer, as the end of a message or as the start of a patch are quoted with
`> `, so that neither `git interpret-trailers` nor `git am` nor a plain grep takes them for more
than text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.front_matter import Split, open_response
from patchq.core.model.values import Correction, EditOutcome, Envelope, FileChange, Header, Source
from patchq.core.text.quote import HIDDEN

MAX_BYTES = 16 * 1024
MAX_PROSE = 2 * 1024
MAX_SUBJECT = 200
_MAX_VALUE = 200
_MARK = " […]"

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_ACTED_UPON = re.compile(
    r"\s*(?:"
    r"(?:patchq-[\w-]*|[\w-]+-by|change-id|cc)\s*:"  # trailers
    r"|\(cherry[ -]picked from commit"
    r"|---(?:\s|$)|diff -|index: |from [0-9a-f]{40}"  # where a patch or a mail begins
    r"|[- ]*(?:>8|8<|>%|%<)[- ]*"  # scissors
    r")",
    re.IGNORECASE,
)
_GAPS = re.compile(r"\n{3,}")
_TRAILER = re.compile(r"([A-Za-z0-9-]+)[ \t]*:[ \t]*(.*)")


def compose(
    *,
    header: Header,
    edits: Sequence[EditOutcome],
    changes: Sequence[FileChange],
    prose: str,
    id: str,
    source: Source,
    base: str,
    digest: str,
    summary: str | None = None,
    corrections: Sequence[Correction] = (),
) -> str:
    """Return the message of a batch's commit, at most 16 KiB of UTF-8.

    `source`, `base` (hex) and the edits' `digest` go to the trailers; `prose` is "" where it is not
    wanted.
    """
    applied = [edit for edit in edits if edit.state == "applied"]
    title, rest = _title_and_rest(header.message or "", summary or "", applied)
    title = title or _from_changes(changes) or f"Apply {id}"
    shown = _cut(_clean(prose), MAX_PROSE)
    paragraphs = [rest, _descriptions(applied, title), shown, _corrected(corrections)]
    block = _trailer_block(header, id, source, base, digest)
    room = MAX_BYTES - len(f"{title}\n\n\n\n{block}\n".encode())
    body = _cut("\n\n".join(part for part in paragraphs if part), room)
    return "\n\n".join(part for part in (title, body, block) if part) + "\n"


def headline(header: Header, summary: str | None = None) -> str:
    """Return a response's summary of all its edits, in one line; empty without one."""
    return _title_and_rest(header.message or "", summary or "", ())[0]


def subject(message: str) -> str:
    return message.split("\n", 1)[0]


def trailers(message: str) -> dict[str, list[str]]:
    """The trailers of a message by their keys: those of its last paragraph, if it is a block of
    them and not the subject.  What `git cherry-pick -x` adds to the block is passed over."""
    paragraphs = re.split(r"\n[ \t]*\n", message.strip("\n"))
    found: dict[str, list[str]] = {}
    last = ""
    for line in paragraphs[-1].split("\n") if len(paragraphs) > 1 else ():
        trailer = _TRAILER.fullmatch(line)
        if trailer:
            last = trailer[1]
            found.setdefault(last, []).append(trailer[2].strip())
        elif last and line[:1] in (" ", "\t"):
            found[last][-1] += f" {line.strip()}"
        elif not line.startswith("(cherry picked from commit "):
            return {}
    return found


def _title_and_rest(message: str, summary: str, applied: Sequence[EditOutcome]) -> tuple[str, str]:
    only = applied[0].description if len(applied) == 1 else None
    for text in filter(None, (message, summary, only and _line(only, 500))):
        first, _, rest = _clean(text).strip().partition("\n")
        if first:
            title = _cut(first, MAX_SUBJECT)
            return title, (rest if title == first else f"{first}\n{rest}").strip("\n")
    return "", ""


def _from_changes(changes: Sequence[FileChange]) -> str:
    if not changes:
        return ""
    verbs = {_verb(change) for change in changes}
    verb = verbs.pop() if len(verbs) == 1 else "Edit"
    only = changes[0]
    if verb == "Rename" and len(changes) == 1:
        return _line(f"Rename {only.renamed_from} to {only.path}", MAX_SUBJECT)
    paths = sorted(change.path for change in changes)
    names = ", ".join(paths[:2])
    more = f" (+{len(paths) - 2})" if len(paths) > 2 else ""
    return _line(f"{verb} {names}", MAX_SUBJECT) + more


def _verb(change: FileChange) -> str:
    if change.after is None:
        return "Delete"
    if change.renamed_from is not None:
        return "Rename"
    return "Add" if change.before is None else "Edit"


def _descriptions(applied: Sequence[EditOutcome], title: str) -> str:
    shown = title.removesuffix(_MARK)
    lines = dict.fromkeys(
        f"- {_line(edit.path, _MAX_VALUE)}: {text}"
        for edit in applied
        if (text := _line(edit.description or "", 500)) and not text.startswith(shown)
    )
    return "\n".join(lines)


def _corrected(corrections: Sequence[Correction]) -> str:
    edits: dict[tuple[str, str], list[str]] = {}
    for correction in corrections:
        edits.setdefault((correction.what, correction.by), []).append(_line(correction.edit, 40))
    return "\n".join(
        f"The {what} text of edit {_line(', '.join(ids), _MAX_VALUE)} was corrected by the {by}."
        for (what, by), ids in edits.items()
    )


def _trailer_block(header: Header, id: str, source: Source, base: str, digest: str) -> str:
    lines = [
        f"Patchq-Batch: {id}",
        f"Patchq-Source: sha256:{source.sha256}",
        f"Patchq-Base: {base}",
        f"Patchq-Edits: sha256:{digest}",
    ]
    author = ":".join(_line(part, _MAX_VALUE) for part in (header.agent, header.model) if part)
    if author:
        lines.append(f"Assisted-by: {author}")
    return "\n".join(lines)


def _clean(text: str) -> str:
    """Text of the response, made harmless; no blank lines at its edges, never two in a row."""
    text = _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    text = HIDDEN.sub(lambda m: m[0] if m[0] in "\n\t" else "", text)
    lines = [line.rstrip() for line in text.split("\n")]
    quoted = [f"> {line}" if _ACTED_UPON.match(line) else line for line in lines]
    return _GAPS.sub("\n\n", "\n".join(quoted)).strip("\n")


def _line(text: str, limit: int) -> str:
    if not text:
        return ""
    return _cut(" ".join(_clean(text).split()), limit)


def _cut(text: str, limit: int) -> str:
    """Return the text, cut at a word to `limit` bytes, with a mark."""
    data = text.encode()
    if len(data) <= limit:
        return text
    kept = data[: max(0, limit - len(_MARK.encode()))].decode("utf-8", "ignore")
    end = max(kept.rfind(edge) for edge in "\n ")
    return (kept[:end] if end > len(kept) // 2 else kept).rstrip() + _MARK


# ---------------------------------------------------------------- the sender

# The first source that names the agent, or the model, counts: a flag, the front matter, the
# environment, the trailer of the commits handed in, the client of a tool.

_ASSISTED = re.compile(r"(?m)^Assisted-by:.*\n?")


def from_environment() -> dict[str, str]:
    """Return the keys of the sender that PATCHQ_AGENT and PATCHQ_MODEL name."""
    return _named(os.environ.get("PATCHQ_AGENT"), os.environ.get("PATCHQ_MODEL"))


def from_trailers(messages: Iterable[str]) -> dict[str, str]:
    """Return the keys of the sender that the last `Assisted-by: AGENT:MODEL` names."""
    values = [value for text in messages for value in trailers(text).get("Assisted-by", [])]
    agent, _, model = values[-1].partition(":") if values else ("", "", "")
    return _named(agent.strip(), model.strip())


def _named(agent: str | None, model: str | None) -> dict[str, str]:
    return {key: value for key, value in (("agent", agent), ("model", model)) if value}


def without_trailer(message: str) -> str:
    """Return the message without its `Assisted-by` lines, which a commit gets anew."""
    return _ASSISTED.sub("", message).rstrip()


def with_header(
    data: bytes, keys: Mapping[str, Any], fallback: Mapping[str, str | None] = {}
) -> tuple[bytes, list[str]]:
    """Return the response with these keys in its front matter, and those replaced.

    `fallback` counts where neither the keys nor the front matter name a sender.  What cannot be
    opened stays as it is: the queue refuses it.
    """
    opened = open_response(data)
    if not isinstance(opened, Envelope):
        return data, []
    given = to_builtins(replace(opened.header, blank=False))
    there = {key: value for key, value in given.items() if value}
    wanted = {key: value for key, value in fallback.items() if value and key not in there}
    asked = to_builtins(dict(keys)).items()
    wanted |= {key: value for key, value in asked if value and value != there.get(key)}
    if not wanted:
        return data, []
    lines = "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in {**there, **wanted}.items()
    )
    text = data.decode("utf-8-sig")
    found = front_matter.split(text)
    if not isinstance(found, Split):
        return f"---\n{lines}---\n{text}".encode(), []
    end = found.block_at + len(found.block)
    made = text[: found.block_at] + lines + text[end:]
    return made.encode(), [key for key in wanted if key in there]
