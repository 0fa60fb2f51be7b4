"""What patches and diffs are known by, to every format that may stand round one or beside one."""

from __future__ import annotations

BEGIN_PATCH = "*** Begin Patch"
"""The first line of a V4A patch."""
GIT = "diff --git "
"""How git begins what a diff says of a file."""
DIFF_LANGUAGES = ("diff", "patch", "udiff", "git-diff")
DIFF_ENDINGS = (".diff", ".patch", ".udiff", ".rej")
