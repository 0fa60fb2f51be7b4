"""patchq as something that runs: the daemon, its upkeep, its numbers, and its check-ups."""
