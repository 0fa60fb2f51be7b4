"""The daemon: serving the queue until told to stop."""
