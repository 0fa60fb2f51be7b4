"""Hooks: programs that judge a batch, or are told of it.

`configured` reads them from the configuration, `engine` asks one about one candidate and notifies
those that follow verdicts; `sandbox` limits what a hook can see and do.  `land.presubmit` decides
which is asked when, and what comes of it.
"""
