"""A further edit beside those of the task: of a file of its own, written in one certain way.

A response may mix forms, so each of these is tried beside every form that may stand in text.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping

from bench.corpus.rewrites.registry import Brief, Files, Rewrite, exact, kind, refuse


def sample(
    name: str,
    group: str,
    before: Files,
    edit: str,
    after: Mapping[str, str | None] | None,
    *,
    apart_from: Container[str] = (),
) -> None:
    """Register a kind: `edit` stands below the task's own edits, and makes `after` of the files
    `before`; a file that is None is deleted.  Where `after` is None, nothing may land.  It is
    tried beside every form but those of the families `apart_from`."""

    @kind(name, group)
    def _beside(brief: Brief) -> Rewrite | None:
        own = {*before, *(after or ())}
        if not brief.form.in_text or brief.ends_open or own & brief.task.before.keys():
            return None
        if brief.form.family in apart_from:
            return None
        response = f"{brief.response()}\n{edit}"
        files = {**brief.task.before, **before}
        result = {**brief.task.result(), **before}
        if after is None:
            return refuse(response, before=files, losses=[result], extra=1)
        changed: dict[str, str | None] = {**result, **after}
        wanted = {path: text for path, text in changed.items() if text is not None}
        return exact(response, wanted, before=files, losses=[result], extra=1)


def fenced(value: object) -> str:
    """A value as JSON in a fence."""
    return f"```json\n{json.dumps(value, indent=1)}\n```\n"
