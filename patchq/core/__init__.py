"""The library: text in, edits and new file contents out."""
