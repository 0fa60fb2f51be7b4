"""The app: queue, git, hooks, decisions."""
