"""From a quote to its one place, or the reason why there is none."""
