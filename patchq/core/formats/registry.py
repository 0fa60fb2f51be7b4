"""The list of formats, and the reading of responses and answers by them.

A new format is one more line in `FORMATS`; see `format`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from msgspec.structs import replace

from patchq.core.formats import find_replace, reader, search_replace, v4a, whole_file
from patchq.core.formats.catalogue import Catalogue
from patchq.core.formats.envelope.api_json import ApiAnswer, ApiPart, ApiText
from patchq.core.formats.envelope.streams import WHOLE, open_answer
from patchq.core.formats.format import Document, Piece, Reading, UnreadableEdit
from patchq.core.formats.json.grammar import JSON_FORMATS, read_call
from patchq.core.formats.marks.paths import PREFIXES, Known, KnownPaths
from patchq.core.formats.unified_diff import grammar
from patchq.core.model.ops import CONTEXTUAL, DIFF, INDEXED, MAKING, Rename
from patchq.core.model.values import Edit, Header, Parsed, Problem

FORMATS = Catalogue(
    (
        search_replace.FORMAT,
        find_replace.FORMAT,
        *JSON_FORMATS,
        v4a.FORMAT,
        grammar.FORMAT,
        whole_file.FORMAT,
    )
)


def parse(text: str, known: Known, header: Header, first_line: int) -> Parsed:
    """See `patchq.core.formats.parse`."""
    paths = KnownPaths.of(known)
    if header.file:
        header = replace(header, file=paths.meant(header.file))
    try:
        text = "\n" * (first_line - 1) + text
        if answer := open_answer(text):
            reading = _answer_read(answer, paths, header)
        else:
            reading = reader.read(text, FORMATS, paths, header)
        found, unlikely = whole_file.decided(reading.edits, reading.under_paths, paths)
        edits, warnings = related(settled(found, paths))
    except UnreadableEdit as error:
        return Parsed(problems=(error.problem,))
    problems = (*reading.warnings, *warnings)
    shown = (*unlikely, *reading.shown)
    head = reading.summary, reading.author
    return Parsed(edits, reading.prose, problems, *head, shown, tuple(reading.named))


def _answer_read(answer: ApiAnswer, known: KnownPaths, header: Header) -> Reading:
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
    at_root = answer.cwd is None or known.base.below(f"{answer.cwd.rstrip('/')}/x") == "x"
    for part in answer.parts:
        found = _part_read(part, doc, header)
        if found is None:
            continue
        if not at_root and isinstance(part, ApiText) and found.edits:
            raise UnreadableEdit(
                part.at[0] - 1,
                f"the paths in this text may stand below {answer.cwd!r}, where the agent was, which"
                " is no root of a work tree of this repository",
                "send the edits alone, with paths from the root of the repository",
            )
        whole.add(found, part.at)
        prose += [found.prose] if isinstance(found, Reading) else []
    whole.prose = "\n\n".join(filter(None, prose))
    return whole


def _part_read(part: ApiPart, doc: Document, header: Header) -> Piece | Reading | None:
    if isinstance(part, ApiText):
        try:
            return reader.read(part.text, FORMATS, doc.known, header, part=True)
        except UnreadableEdit as error:
            raise UnreadableEdit.of(replace(error.problem, line=part.at[0])) from None
    found = read_call(doc, part)
    if found and not part.certain:
        raise UnreadableEdit(
            part.at[0] - 1,
            f"the stream does not tell whether this call of {part.name!r} was made",
            WHOLE,
        )
    return found


# ---------------------------------------------------------------- paths


def settled(edits: Iterable[Edit], known: KnownPaths) -> list[Edit]:
    """Return the edits with their paths as git has them.

    Raises `UnreadableEdit`.
    The headers of a diff name their own prefixes.  In other forms the path of a new file may begin
    with a diff's prefix or with a directory of that name: it is a prefix if another path lost it.
    """
    found = [edit if edit.format == DIFF else _renamed(edit, known.meant) for edit in edits]
    bare: dict[str, str] = {}
    for edit in found:
        path = edit.op.to if isinstance(edit.op, Rename) else edit.path
        makes = edit.format != DIFF and isinstance(edit.op, MAKING) and not known.base.has(path)
        if not makes or path[:2] not in PREFIXES:
            continue
        directory, there = path[2:].rpartition("/")[0], known.base.has_directory
        lost, literal = path[:2] in known.lost, there(path[0])
        if lost and not literal:
            bare[path] = path[2:]
        elif lost or (directory and there(directory) and not literal):
            message = (
                f"line {edit.at[0]}, column 1: {path!r} may be {path[2:]!r} behind a diff's "
                f"prefix, or a file in a directory {path[0]!r}"
            )
            hint = f"name the new file without a prefix: {path[2:]}"
            raise UnreadableEdit.of(Problem("path.invalid", message, hint, line=edit.at[0]))
    return [_renamed(edit, lambda path: bare.get(path, path)) for edit in found] if bare else found


def _renamed(edit: Edit, name: Callable[[str], str]) -> Edit:
    path, op = name(edit.path), edit.op
    if isinstance(op, Rename) and (to := name(op.to)) != op.to:
        op = Rename(to)
    return edit if path == edit.path and op is edit.op else replace(edit, path=path, op=op)


# ---------------------------------------------------------------- relations

# `cascades` names the edits that depend on this one, `dependsOn` those that this one depends on: an
# edit is cancelled when one that it depends on is applied.  A contextual edit with the id of an
# indexed one is its backup.  An id may be used again, as lists do that begin to count anew, as long
# as nothing refers to it.
CODE = "edit.dependency"
_CORRECT = "correct the id, or leave the relation out"


def related(edits: Sequence[Edit]) -> tuple[tuple[Edit, ...], tuple[Problem, ...]]:
    """Return the edits with their ids and relations, and warnings.

    An edit without an id is numbered by its place in the response.  Raises `UnreadableEdit`.
    """
    named = {id for edit in edits for id in (*edit.cascades, *edit.depends_on)}
    if not named and not any(edit.id for edit in edits):
        return _numbered(edits), ()
    edits = _with_own_ids(edits, named)
    indexed = {edit.id for edit in edits if edit.id and edit.format == INDEXED}
    known = indexed | {edit.id for edit in edits if edit.id and edit.format == CONTEXTUAL}
    needs: dict[str, list[str]] = {}
    warnings: list[Problem] = []
    for edit in edits:
        for other in edit.cascades:
            needs.setdefault(other, []).append(edit.id)
            if other not in known:
                warnings.append(
                    Problem(
                        CODE,
                        f"`cascades` of edit {edit.id!r} names {other!r}, which no edit of the "
                        "response is",
                        _CORRECT,
                        "warning",
                        edit=edit.id or None,
                        line=edit.at[0],
                    )
                )
        for other in edit.depends_on:
            if other not in known:
                message = f"expected the id of another edit in `dependsOn`, found {other!r}"
                raise UnreadableEdit(edit.at[0] - 1, message, _CORRECT, CODE)
    for i, edit in enumerate(edits):
        depends_on = dict.fromkeys((*edit.depends_on, *needs.get(edit.id or "\0", ())))
        backs = edit.id if edit.format == CONTEXTUAL and edit.id in indexed else None
        if depends_on or backs:
            edits[i] = replace(edit, depends_on=tuple(depends_on), fallback_of=backs)
    if any(edit.depends_on for edit in edits):
        _check_cycles(edits)
    return _numbered(edits), tuple(warnings)


def _with_own_ids(edits: Sequence[Edit], named: Collection[str]) -> list[Edit]:
    """Return the edits without repeated ids.

    The later edit loses its id.  Raises `UnreadableEdit` if it is one of those `named` by others.
    """
    own: list[Edit] = []
    met: set[tuple[str, str]] = set()
    forms: dict[str, set[str]] = {}
    for edit in edits:
        forms.setdefault(edit.id, set()).add(edit.format)
    for edit in edits:
        again = edit.id and (edit.format, edit.id) in met
        if again and (edit.id in named or len(forms[edit.id]) > 1):
            raise UnreadableEdit(
                edit.at[0] - 1,
                f"expected an id of its own for every edit, found {edit.id!r} twice",
                "give every edit another id",
            )
        met.add((edit.format, edit.id))
        own.append(replace(edit, id="") if again else edit)
    return own


def _check_cycles(edits: Sequence[Edit]) -> None:
    graph: dict[str, set[str]] = {}
    for edit in edits:
        graph.setdefault(edit.id, set()).update(edit.depends_on)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        raise UnreadableEdit(
            next(edit.at[0] for edit in edits if edit.id in cycle) - 1,
            f"expected no circle of dependent edits, found {' → '.join(cycle[::-1])}",
            "leave out one of the relations",
            CODE,
        ) from None


def _numbered(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    used = {edit.id for edit in edits}
    numbered = []
    for number, edit in enumerate(edits, 1):
        id = edit.id or str(number)
        while not edit.id and id in used:
            id += "'"
        numbered.append(edit.but(id))
    return tuple(numbered)
