"""Edits written in JSON: edit scripts, indexed and contextual edits, the calls of editing tools."""
