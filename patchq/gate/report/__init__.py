"""Reports, pages, commit messages, codes and logs, all without secrets."""
