"""The names of files that hold secrets, which no batch changes unless it is allowed to."""

from __future__ import annotations

from fnmatch import fnmatchcase

# Patterns for one name of a path; the last that matches decides, and `!` takes a name out.
SECRET_NAMES = (
    ".env", ".env.*", "!.env.example", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".pypirc", "credentials*.json",
)  # fmt: skip


def deny_secrets(path: str) -> str | None:
    """Return the reason why a path may not be changed, if one of its names is a secret's."""
    for name in path.casefold().split("/"):
        matches = (p for p in reversed(SECRET_NAMES) if fnmatchcase(name, p.removeprefix("!")))
        pattern = next(matches, "!")
        if not pattern.startswith("!"):
            return f"files named `{pattern}` hold secrets"
    return None
