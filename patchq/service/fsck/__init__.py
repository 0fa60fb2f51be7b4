"""Damage of the queue and of patchq's refs, and mending it."""
