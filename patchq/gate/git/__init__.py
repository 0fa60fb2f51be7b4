"""The repository: objects in memory until they land, refs by compare-and-swap, work trees."""
