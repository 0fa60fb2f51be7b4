"""The surroundings of edits: front matter, thinking, and the answers of APIs."""
