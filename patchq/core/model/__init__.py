"""The values that every room uses: edits, outcomes, and names."""
