"""Tests of the room for forges, against a fake that GitHub's own descriptions judge."""
