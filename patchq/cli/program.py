"""The command that started this process, as others may start it again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NAME = "patchq"


def own_words() -> list[str]:
    """Return the words that start this very patchq, whatever PATH is."""
    scripts = (Path(sys.argv[0]), Path(sys.executable).with_name(_NAME))
    script = next((one for one in scripts if one.name == _NAME and one.is_file()), None)
    return [os.path.abspath(script)] if script else [sys.executable, "-m", _NAME]
