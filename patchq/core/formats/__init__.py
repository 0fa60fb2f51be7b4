"""The formats in which a model may write edits.

Each has its grammar and its instructions in one file.  The content decides the format, never a
file's name or the configuration.  The grammars are loaded with the first response, so that commands
which read none start sooner.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchq.core.formats.marks.paths import Known
from patchq.core.model.values import EditOutcome, Header, Parsed, Problem


def instructions(name: str | None, path: str | None) -> str:
    """Return the instructions of a format, with `path` as the example's path.

    They are those of blocks for a name that is None or unknown.
    """
    from patchq.core.formats.registry import FORMATS

    return FORMATS.get(name or "", FORMATS["search_replace"]).instructions_for(path)


def instructions_after(problems: Sequence[Problem], edits: Sequence[EditOutcome]) -> str:
    """Return instructions for the edits of a refused response.

    They are for the format of its first wrong edit.  A script that cannot be applied, and a file
    that was cut, are asked for as blocks.  The path in the example is one that the response may
    well name again.
    """
    errors = [problem for problem in problems if problem.severity == "error"]
    by_id = {edit.id: edit for edit in edits}
    wrong = [by_id[problem.edit] for problem in errors if problem.edit in by_id]
    forms = [*(problem.format for problem in errors), *(edit.format for edit in (*wrong, *edits))]
    form = next(filter(None, forms), None)
    cut = any(problem.code == "response.truncated" for problem in errors)
    if form == "edit_script" or (cut and form == "whole_file"):
        form = None
    bad = {problem.path for problem in errors if problem.code.startswith("path.")}
    paths = [*(problem.path for problem in errors), *(edit.path for edit in edits)]
    return instructions(form, next((p for p in paths if p and p not in bad), None))


def parse(text: str, known: Known, header: Header | None = None, first_line: int = 1) -> Parsed:
    """Return all edits of a response's text, in order, or its problems.

    `known` decides whether the base has a path, or, as `BasePaths`, more; `header` is the front
    matter.  `first_line` is the line of the response on which the text begins.
    """
    from patchq.core.formats import registry

    return registry.parse(text, known, header or Header(), first_line)
