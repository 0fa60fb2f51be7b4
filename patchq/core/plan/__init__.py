"""From edits to changed files: order, conflicts, and checks of the result."""
