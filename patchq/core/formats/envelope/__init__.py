"""What surrounds the edits: front matter, thinking, the JSON answers of APIs."""
