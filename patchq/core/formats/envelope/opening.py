"""Opening a response: from the bytes of a file to the text that holds the edits."""

from __future__ import annotations

from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.front_matter import read_header
from patchq.core.model.values import Envelope, Header, Problem

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def open_response(data: bytes) -> Envelope | tuple[Problem, ...]:
    """The header and the text of a response, or why it cannot be read.

    The text keeps its line ends.  It is never blank: a response without any is refused.
    """
    if problem := _not_text(data):
        return (problem,)
    text, first_line, header = data.removeprefix(_BOM).decode(), 1, Header()
    found = front_matter.split(text)
    if isinstance(found, Problem):
        return (found,)
    if found is not None:
        read = read_header(found)
        if isinstance(read, tuple):
            return read
        header, text, first_line = read, found.body, found.body_line
    if not text.strip():
        hint = "Send the edits in one of the formats that `patchq formats` lists."
        return (Problem("response.no_edits", "The response holds no text.", hint),)
    return Envelope(header, text, first_line)


def _not_text(data: bytes) -> Problem | None:
    hint = "Send the response as UTF-8 text."
    if not data:
        again = "Write the whole file under another name and rename it into the inbox."
        return Problem("response.incomplete", "The response is an empty file.", again)
    if data.startswith(_UTF16):
        return Problem("response.not_text", "The response is UTF-16, not UTF-8.", hint, line=1)
    at = len(data)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        at = error.start
    nul = data.find(b"\0", 0, at)
    if nul < 0 and at == len(data):
        return None
    what, at = ("is a NUL", nul) if nul >= 0 else ("is no UTF-8", at)
    line = data.count(b"\n", 0, at) + 1
    message = f"The byte at offset {at} of the response, line {line}, {what}."
    return Problem("response.not_text", message, hint, line=line)
