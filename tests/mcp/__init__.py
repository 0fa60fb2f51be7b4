"""`patchq mcp`, as the official SDK's client meets it."""
