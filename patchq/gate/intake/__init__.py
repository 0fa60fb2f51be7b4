"""Ways in for work that is committed: ranges, branches, and git's own hooks."""
