"""What a view hands to its template, and the page that comes of it.

Whatever a template prints is data: it is escaped, and what a reader would not see is written out
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from patchq.core.text.quote import visible

PAGES = {
    "/": "Inbox",
    "/history": "History",
    "/statistics": "Statistics",
    "/conflicts": "Conflicts",
    "/help": "Help",
}
"""Where the navigation leads."""


class Shown(Struct, frozen=True):
    """A page: its template, its title, and the values that the template prints."""

    template: str
    title: str
    values: Mapping[str, Any]


def rendered(shown: Shown, path: str, version: str) -> str:
    """The page as HTML; `version` is that of what it shows (`live`)."""
    template = _templates().get_template(shown.template)
    return template.render(
        **shown.values, title=shown.title, path=path, pages=PAGES, version=version
    )


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )


def _plain(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value, keep="\n\t")
    return value
