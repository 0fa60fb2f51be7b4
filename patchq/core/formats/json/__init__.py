"""Edits written in JSON: edit scripts, indexed and contextual edits, the calls of editing tools.

They are read together, by `grammar`; each has its own file for what it says.
"""

from patchq.core.formats.json.grammar import JSON_FORMATS, read_call

__all__ = ["JSON_FORMATS", "read_call"]
