"""The forms in which a model may write edits; each has its grammar and instructions in one file.

The form is told by the content, never by a file's name or the configuration.  The grammars are
loaded with the first response, so that commands which read none start sooner.
"""

from __future__ import annotations

from patchq.core.formats.marks.paths import Known
from patchq.core.model.values import Header, Parsed


def instructions(name: str | None, path: str | None) -> str:
    """How edits are written in the form of that name (None: as blocks), for the file at `path`."""
    from patchq.core.formats.registry import FORMATS

    return FORMATS.get(name or "", FORMATS["search_replace"]).instructions_for(path)


def parse(text: str, known: Known, header: Header | None = None, first_line: int = 1) -> Parsed:
    """Every edit of a response's text, in order, or the problems that refuse the response.

    `known` tells whether the base has a path, or, as `BasePaths`, more; `header` is what the front
    matter says.  `first_line` is the line of the response on which the text begins.
    """
    from patchq.core.formats import registry

    return registry.parse(text, known, header or Header(), first_line)
