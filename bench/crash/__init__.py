"""Does it survive everything? Kills, errors, power cuts, long runs and broken responses."""
