"""Does it hold when everybody works at once? Judged by the git command line alone."""
