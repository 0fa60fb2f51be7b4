"""Hooks: programs that judge a batch, or follow its verdict.

`configured` reads them from the configuration, `engine` asks one about one candidate and
notifies those that follow verdicts; `sandbox` limits their access. `land.presubmit` decides
which is asked when, and acts on the answers."""
