"""Is the result right? Every case of a corpus through the installed command."""
