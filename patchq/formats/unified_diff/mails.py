"""Mails as `git format-patch` writes them: who wrote the change, and what it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header

from patchq.formats.format import UnreadableEdit

begins = re.compile(r"From [0-9a-f]{40}(?:[0-9a-f]{24})? \w{3} \w{3} ").match
"""Whether a line is one that opens a mail."""
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)", re.DOTALL)
_TAGS = re.compile(r"(?:\s*(?:\[[^\]]*\]|[Rr][Ee]:))*\s*")
_ENCODED = ("base64", "quoted-printable")
_MAX_HEADERS = 40
_MAX_ENCODED = 10_000


@dataclass(frozen=True, slots=True)
class Mail:
    """`author` is `Name <address>`; `end` is the index of the first line behind the headers."""

    author: str | None
    subject: str | None
    end: int


def may_begin(line: str) -> bool:
    """Whether the line may be the first of a mail's head."""
    return line.startswith("From: ") or begins(line) is not None


def mail_at(lines: Sequence[str], start: int) -> Mail | None:
    """The mail whose headers begin on line `start` (an index), or None.

    Without git's first line (`From <oid> …`) it takes `From:`, `Date:` and `Subject:` to make one.
    Raises `UnreadableEdit` where its text is encoded.
    """
    opened = begins(lines[start]) is not None
    if not may_begin(lines[start]):
        return None
    below = "" if opened else "\n".join(lines[start : start + _MAX_HEADERS]).lower()
    if not opened and not ("\nsubject:" in below and "\ndate:" in below):
        return None
    fields, end = _fields(lines, start + opened)
    if not opened and not {"from", "date", "subject"} <= fields.keys():
        return None
    if fields.get("content-transfer-encoding", "").lower() in _ENCODED:
        raise UnreadableEdit(
            start,
            "the mail's text is encoded, so its diff cannot be read",
            "send the output of `git format-patch` itself, not a mail that was on its way",
        )
    author = fields.get("from")
    body = end + 1
    if body < len(lines) and lines[body].startswith("From: "):  # the sender is not the author
        author, end = _decoded(lines[body][len("From: ") :]), body + 1
    subject = _TAGS.sub("", fields.get("subject", ""), count=1)
    return Mail(author or None, subject or None, min(end + 1, len(lines)))


def refuse_several(lines: Sequence[str], start: int, mail: Mail) -> None:
    """Raise `UnreadableEdit` if another mail begins behind `mail`, which begins on line `start`."""
    for i in range(mail.end, len(lines)):
        if begins(lines[i]) or mail_at(lines, i):
            raise UnreadableEdit(
                i,
                f"a second mail begins here; the first one begins on line {start + 1}",
                "send every mail as a response of its own: `git mailsplit -o. FILE` splits them, "
                "and `depends_on` in the front matter keeps their order",
            )


def _fields(lines: Sequence[str], start: int) -> tuple[dict[str, str], int]:
    """The header fields by their lower-case names, and the index of the line that ends them."""
    fields: dict[str, str] = {}
    name, i = "", start
    while i < min(len(lines), start + _MAX_HEADERS):
        line = lines[i].rstrip("\r")
        if name and line[:1] in (" ", "\t") and line.strip():
            fields[name] += " " + line.strip()
        elif match := _HEADER.fullmatch(line):
            name = match[1].lower()
            fields[name] = match[2].strip()
        else:
            break
        i += 1
    return {name: _decoded(value) for name, value in fields.items()}, i


def _decoded(value: str) -> str:
    if "=?" not in value or len(value) > _MAX_ENCODED:
        return value.strip()
    try:
        return " ".join(str(make_header(decode_header(value))).split())
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return value.strip()
