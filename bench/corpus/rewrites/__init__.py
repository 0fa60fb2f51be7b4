"""Is the result right, however a model writes it?  Certain changes, written in many other ways."""
