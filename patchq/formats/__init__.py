"""The forms in which a model may write edits; each has its grammar and instructions in one file.

The form is told by the content, never by a file's name or the configuration.
"""

from __future__ import annotations

from types import ModuleType

from patchq.formats import search_replace
from patchq.formats.paths import Known
from patchq.model import Parsed

FORMATS: dict[str, ModuleType] = {search_replace.NAME: search_replace}


def parse(text: str, known: Known, default_path: str | None = None, first_line: int = 1) -> Parsed:
    """Every edit of a response's text, in order, or the problems that refuse the response.

    `known` tells whether the base has a path; `default_path` is the front matter's `file`.
    `first_line` is the line of the response on which the text begins.
    """
    return search_replace.parse("\n" * (first_line - 1) + text, known, default_path)
