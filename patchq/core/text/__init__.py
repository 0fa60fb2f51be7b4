"""Text: lines, search, differences, JSON and YAML, grammars of languages, quoting."""
