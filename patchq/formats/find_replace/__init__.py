"""FIND/REPLACE blocks: a labelled quote and what takes its place."""
