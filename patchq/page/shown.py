"""The data of a view for its template, and the page rendered from it.

Whatever a template prints is data: it is escaped, and what a reader would not see is written out
first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct
from starlette.datastructures import ImmutableMultiDict

from patchq.core.text.quote import visible
from patchq.gate.api import words

_QUOTED = re.compile("`([^`\n]+)`")
_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "min"), (1, "s"))


class Shown(Struct, frozen=True):
    """A page: its template, its title, and the values that the template prints."""

    template: str
    title: str
    values: Mapping[str, Any]


def rendered(shown: Shown, path: str, version: str, asked: ImmutableMultiDict[str, str]) -> str:
    """Return the page as HTML; `version` is the state it shows (see `live`)."""
    template = _templates().get_template(shown.template)
    values = {**shown.values, "title": shown.title, "path": path, "version": version}
    return template.render(values, query=asked)


def part(name: str, *values: object) -> Markup:
    """Return the output of a macro of `parts.html`."""
    macro = getattr(_templates().get_template("parts.html").module, name)
    return Markup(macro(*values))


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )
    made.filters |= {"ago": _ago, "words": _words, "checks": words.checks_of}
    return made


def _ago(iso: str) -> str:
    """Return the age of a time in the largest unit it reaches twice."""
    passed = max(0, int(time.time() - datetime.fromisoformat(iso).timestamp()))
    for size, unit in _UNITS:
        if passed >= 2 * size:
            return f"{passed // size} {unit} ago"
    return "just now"


def _words(text: str) -> Markup:
    escaped = str(escape(visible(text, keep="\n\t")))  # a `Markup` would escape the tags, too
    return Markup(_QUOTED.sub(r"<code>\1</code>", escaped))


def _plain(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value, keep="\n\t")
    return value
