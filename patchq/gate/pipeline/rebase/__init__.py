"""What of a change made for an older commit still fits the tip."""
