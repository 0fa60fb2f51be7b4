"""V4A patches, as Codex's `apply_patch` reads them."""
