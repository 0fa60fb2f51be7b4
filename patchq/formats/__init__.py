"""The forms in which a model may write edits; each has its grammar and instructions in one file.

The form is told by the content, never by a file's name or the configuration.
"""

from __future__ import annotations

from types import ModuleType

from patchq.envelope import api_json
from patchq.envelope.api_json import Opened
from patchq.formats import (
    contextual,
    edit_calls,
    edit_script,
    find_replace,
    indexed,
    json_edits,
    reader,
    search_replace,
    unified_diff,
    v4a,
    whole_file,
)
from patchq.formats.blocks import Unreadable
from patchq.formats.document import Document
from patchq.formats.paths import Known
from patchq.formats.reader import Reading
from patchq.model import Parsed, Problem

FORMATS: dict[str, ModuleType] = {
    module.NAME: module
    for module in (
        search_replace, find_replace, edit_script, indexed, contextual, edit_calls, v4a,
        unified_diff, whole_file,
    )
}  # fmt: skip


def parse(text: str, known: Known, default_path: str | None = None, first_line: int = 1) -> Parsed:
    """Every edit of a response's text, in order, or the problems that refuse the response.

    `known` tells whether the base has a path; `default_path` is the front matter's `file`.
    `first_line` is the line of the response on which the text begins.
    """
    try:
        opened = api_json.open_api(text)
        if opened is None:
            reading = reader.read("\n" * (first_line - 1) + text, known, default_path)
        else:
            reading = _answer(opened, known, default_path, first_line)
        edits = reader.numbered(reading.edits)
    except Unreadable as error:
        return Parsed(problems=(error.problem,))
    return Parsed(
        edits,
        reading.prose,
        tuple(reading.warnings),
        reading.summary,
        reading.author,
    )


def _answer(opened: Opened, known: Known, default_path: str | None, first_line: int) -> Reading:
    """The edits of an API's answer: those in its text, and its tool calls."""
    if opened.cut is not None:
        problem = Problem(
            "response.truncated",
            f"the API stopped the answer for the reason {opened.cut!r}, before its end",
            "ask again for less at once; nothing of a cut answer is applied",
        )
        raise Unreadable.of(problem)
    told = Reading()
    doc = Document([], known, default_path)
    for part in opened.parts:
        lines = part.at[0] + first_line - 1, part.at[1] + first_line - 1
        if isinstance(part, api_json.Text):
            try:
                piece = reader.read(part.text, known, default_path)
            except Unreadable as error:
                raise error.moved(lines[0]) from None
            told.edits += [reader.moved(edit, lines) for edit in piece.edits]
            told.prose = "\n\n".join(filter(None, (told.prose, piece.prose)))
            told.summary = told.summary or piece.summary
            told.author = told.author or piece.author
            told.warnings += piece.warnings
        elif call := json_edits.read_call(doc, part):
            told.edits += [reader.moved(edit, lines) for edit in call.edits]
            told.summary = told.summary or call.summary
            told.warnings += call.warnings
    return told
