"""The library, which makes edits and new file contents from text."""
