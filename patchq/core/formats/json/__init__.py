"""Edits in JSON: edit scripts, indexed and contextual edits, and calls of tools."""
