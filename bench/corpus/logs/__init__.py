"""Cases out of what somebody has on their own disk: the logs of tools that edited for them."""
