"""Hooks: programs that judge a batch, or are told of it.

`steps` reads them from the configuration, `engine` asks one about one candidate: `running` starts
its process through a `keeper`, in a slot whose work tree `warm` keeps.  Who is asked when, and what
comes of it, is the pipeline's matter (`checking`, `telling`).
"""
