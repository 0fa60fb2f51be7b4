"""Documents that show edits, quotations and excerpts, files written whole."""

from __future__ import annotations

from bench.corpus.rewrites.forms import language
from bench.corpus.rewrites.registry import Brief, Rewrite, exact, kind
from bench.corpus.rewrites.tasks import holds_signs, is_plain, lines_of

PAGE = "docs/about-this-format.md"


def _page(brief: Brief) -> str:
    """A page that shows the edits, in a fence that no fence of theirs closes."""
    edits = brief.response()
    fence = "``````" if "````" in edits else "````"
    return f"# How to answer\n\nWrite it like this:\n\n{fence}\n{edits}{fence}\n\nThat is all.\n"


@kind("a document that shows the edits", "documents")
def _document(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"api", "mail"}:
        return None
    text = _page(brief)
    return exact(f"````````markdown:{PAGE}\n{text}````````\n", {**brief.task.before, PAGE: text})


@kind("a document by its path line", "documents")
def _document_line(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"api", "mail"}:
        return None
    text = _page(brief)
    return exact(f"{PAGE}\n````````markdown\n{text}````````\n", {**brief.task.before, PAGE: text})


@kind("an excerpt beside the edits", "documents")
def _excerpt(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or not brief.form.in_text:
        return None
    c = able[0]
    lines = lines_of(brief.task.before[c.path])
    if len(lines) < 12:
        return None
    i = brief.dice.randrange(2, len(lines) - 6)
    quote = "".join(lines[i : i + 4])
    if not is_plain(quote) or not quote.strip():
        return None
    excerpt = f"Now it reads, in `{c.path}`:\n\n```{language(c.path)}\n{quote}```\n"
    return exact(f"{excerpt}\nso:\n\n{brief.response()}")


@kind("whole_files: true", "whole files")
def _whole_files(brief: Brief) -> Rewrite | None:
    words = [c.path for c in brief.changes if "/" not in c.path and "." not in c.path]
    if brief.form.name != "whole_file" or words:
        return None
    parts = "\n".join(f"{c.path}\n````{language(c.path)}\n{c.new}````\n" for c in brief.changes)
    return exact(f"---\nwhole_files: true\n---\n{parts}")


@kind("the whole old file beside the edits", "documents")
def _whole_quotation(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or not brief.form.in_text:
        return None
    c = able[0]
    text = brief.task.before[c.path]
    if holds_signs(text):
        return None
    quotation = f"The file is now, in `{c.path}`:\n\n````{language(c.path)}\n{text}````\n"
    return exact(f"{quotation}\nThe change:\n\n{brief.response()}")
