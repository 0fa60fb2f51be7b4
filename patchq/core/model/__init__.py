"""The values that every room speaks of: edits, outcomes, the report's type, errors, names."""
