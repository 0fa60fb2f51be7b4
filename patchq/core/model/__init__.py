"""The values that every room speaks of: edits, outcomes, names."""
