"""All formats, and the reading of a response or an API's answer by them.

A new format is one more line in `FORMATS`; see `format`.
"""

from __future__ import annotations

from dataclasses import replace

from patchq.formats import find_replace, reader, search_replace, unified_diff, v4a, whole_file
from patchq.formats.catalogue import Catalogue
from patchq.formats.envelope import front_matter
from patchq.formats.envelope.api_json import ApiAnswer, ApiText, open_api
from patchq.formats.format import Document, UnreadableEdit
from patchq.formats.json import JSON_FORMATS, read_call
from patchq.formats.marks.paths import Known, KnownPaths
from patchq.formats.marks.shell import lost_change
from patchq.formats.names import settled
from patchq.formats.reader import Reading
from patchq.formats.relations import related
from patchq.model.values import Header, Parsed, Problem

FORMATS = Catalogue(
    (
        search_replace.FORMAT,
        find_replace.FORMAT,
        *JSON_FORMATS,
        v4a.FORMAT,
        unified_diff.FORMAT,
        whole_file.FORMAT,
    )
)


def parse(text: str, known: Known, header: Header, first_line: int) -> Parsed:
    """See `patchq.formats.parse`."""
    paths = KnownPaths.of(known)
    header = replace(header, file=header.file and paths.meant(header.file))
    try:
        answer = open_api(text)
        if answer is None:
            reading = reader.read("\n" * (first_line - 1) + text, FORMATS, paths, header)
        else:
            reading = _answer_read(answer, paths, header, first_line)
        _check_shell(reading, paths)
        edits, warnings = related(settled(reading.edits, paths), reading.stated)
    except UnreadableEdit as error:
        return Parsed(problems=(error.problem,))
    problems = (*reading.warnings, *warnings)
    return Parsed(edits, reading.prose, problems, reading.summary, reading.author)


def _check_shell(reading: Reading, paths: KnownPaths) -> None:
    """Refuse edits beside a shell command that changes a file of the tree, too."""
    lost = lost_change(reading.shell, paths.base) if reading.edits else None
    if lost is None:
        return
    what = f"{lost.does} {lost.paths[0]}" if lost.paths else "changes files"
    raise UnreadableEdit(
        lost.line - 1,
        f"the command `{lost.text}` {what}, and commands are not run: the edits beside it would "
        "land alone",
        "send that change as an edit too, in the form of the others (`patchq formats`), or leave "
        "the command out",
    )


def _answer_read(answer: ApiAnswer, known: Known, header: Header, first_line: int) -> Reading:
    """The edits of an API's answer: those in its text, and its tool calls."""
    if answer.cut is not None:
        raise UnreadableEdit.of(
            Problem(
                "response.truncated",
                f"the API stopped the answer for the reason {answer.cut!r}, before its end",
                "ask again for less at once; nothing of a cut answer is applied",
            )
        )
    whole, prose = Reading(), list[str]()
    doc = Document([], known, header.file, header.whole_files)
    for part in answer.parts:
        lines = part.at[0] + first_line - 1, part.at[1] + first_line - 1
        if isinstance(part, ApiText):
            try:
                if not (whole.edits or header.blank) and (lost := front_matter.inside(part.text)):
                    raise UnreadableEdit.of(lost)
                reading = reader.read(part.text, FORMATS, known, header)
            except UnreadableEdit as error:
                raise error.moved(lines[0]) from None
            whole.add(reading, lines)
            prose.append(reading.prose)
        elif call := read_call(doc, part):
            whole.add(call, lines)
    whole.prose = "\n\n".join(filter(None, prose))
    return whole
