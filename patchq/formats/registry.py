"""All forms in their order, and the reading of a response or an API's answer by them."""

from __future__ import annotations

from types import ModuleType

from patchq.formats import reader, search_replace
from patchq.formats.document import Document
from patchq.formats.envelope import api_json
from patchq.formats.envelope.api_json import Opened
from patchq.formats.find_replace import reading as find_replace
from patchq.formats.json import contextual, edit_calls, edit_script, indexed
from patchq.formats.json import edits as json_edits
from patchq.formats.marks.paths import Known
from patchq.formats.reader import Reading
from patchq.formats.relations import related
from patchq.formats.unified_diff import reading as unified_diff
from patchq.formats.unreadable import Unreadable
from patchq.formats.v4a import reading as v4a
from patchq.formats.whole_file import reading as whole_file
from patchq.model.values import Parsed, Problem

FORMATS: dict[str, ModuleType] = {
    module.NAME: module
    for module in (
        search_replace, find_replace, edit_script, indexed, contextual, edit_calls, v4a,
        unified_diff, whole_file,
    )
}  # fmt: skip


def parse(text: str, known: Known, default_path: str | None = None, first_line: int = 1) -> Parsed:
    """See `patchq.formats.parse`."""
    try:
        opened = api_json.open_api(text)
        if opened is None:
            reading = reader.read("\n" * (first_line - 1) + text, known, default_path)
        else:
            reading = _answer(opened, known, default_path, first_line)
        edits, warnings = related(reading.edits, reading.stated)
    except Unreadable as error:
        return Parsed(problems=(error.problem,))
    return Parsed(
        edits,
        reading.prose,
        (*reading.warnings, *warnings),
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
    told, prose = Reading(), list[str]()
    doc = Document([], known, default_path)
    for part in opened.parts:
        lines = part.at[0] + first_line - 1, part.at[1] + first_line - 1
        if isinstance(part, api_json.Text):
            try:
                piece = reader.read(part.text, known, default_path)
            except Unreadable as error:
                raise error.moved(lines[0]) from None
            told.take([reader.moved(edit, lines) for edit in piece.edits], piece.stated)
            prose.append(piece.prose)
            told.summary = told.summary or piece.summary
            told.author = told.author or piece.author
            told.warnings += piece.warnings
        elif call := json_edits.read_call(doc, part):
            told.take([reader.moved(edit, lines) for edit in call.edits], call.stated)
            told.summary = told.summary or call.summary
            told.warnings += call.warnings
    told.prose = "\n\n".join(filter(None, prose))
    return told
