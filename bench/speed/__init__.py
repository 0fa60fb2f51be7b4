"""Is it fast? Rates, latencies, hooks, parsing and matching, and a daemon that is flooded."""
