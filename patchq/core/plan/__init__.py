"""From edits to changed files: their order, what keeps them apart, what must not come of them."""
