"""Verdicts come true: a group is checked, its refs move, its reports appear."""
