"""Ways in for work that is committed: ranges, pushes, branches, and git's own hooks."""
