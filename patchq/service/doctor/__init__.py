"""What `patchq doctor` looks at."""
