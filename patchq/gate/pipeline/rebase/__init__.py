"""Changes made for an older commit, carried to the tip."""
