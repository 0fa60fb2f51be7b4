"""patchq: the gate between LLM agents and git branches."""

__version__ = "0.1.0"
