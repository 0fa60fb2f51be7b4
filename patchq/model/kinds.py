"""The names of forms that decide which of two edits counts."""

CONTEXTUAL = "contextual"
INDEXED = "indexed"
