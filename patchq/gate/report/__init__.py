"""Reports, pages, commit messages, codes and logs, and the secrets that none of them repeats."""
