"""The configuration: its keys, its file, the rules on paths that it sets."""
