"""Edits written in JSON: edit scripts, indexed and contextual edits, the calls of editing tools."""

from patchq.core.formats.json.grammar import JSON_FORMATS, read_call

__all__ = ["JSON_FORMATS", "read_call"]
