"""Proposals as pull requests of a forge, reconciled in rounds.

No event is believed and nothing of the forge is remembered: what was read there is in reports, what
was written is there.  So a round that is killed anywhere is made good by the next one.
"""
