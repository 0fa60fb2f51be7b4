"""Hooks: programs that judge a batch, or are told of it.

`steps` reads them from the configuration, `engine` asks one about one candidate, says what its end
means, and lets others know of what was decided; `jail` is what a hook can see and do.  Who is asked
when, and what comes of it, is the matter of `land.presubmit`.
"""
