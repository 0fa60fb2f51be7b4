"""Which of the configured hooks could not be started, found out without starting any."""

from __future__ import annotations

import shutil
import subprocess

from patchq.config.schema import Config, Hook
from patchq.hooks import shipped
from patchq.hooks.steps import SHELL, environment, shell_words


def cannot_start(config: Config) -> list[tuple[int, str]]:
    """The hooks that could not be started, by their place in the list, and why."""
    return [(n, flaw) for n, hook in enumerate(config.hooks) if (flaw := _flaw(hook))]


def _flaw(hook: Hook) -> str | None:
    name = shipped.name_in(hook.run)
    if name is not None:
        return shipped.misfit(name, hook.stage)
    shell = shutil.which(SHELL)
    if shell is None:
        return f"expected {SHELL} to run it, and there is none"
    path = environment(hook.env)["PATH"]
    syntax = _run([shell, "-n", "-c", hook.run], path)
    if syntax.returncode:
        last = syntax.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        return f"expected a line that the shell can read, got: {last}"
    word = _first_word(hook.run)
    if word is None or (word.startswith(("./", "../")) or ("/" in word and word[0] != "/")):
        return None  # a file of the candidate's own tree
    if _run([shell, "-c", 'command -v -- "$1"', shell, word], path).returncode:
        return f"expected a program to run, and there is no `{word}` on the PATH"
    return None


def _run(command: list[str], path: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, check=False, env={"PATH": path})


def _first_word(line: str) -> str | None:
    """The program that a simple shell line starts with; None where that is not plain to see."""
    words = shell_words(line)
    while words and "=" in words[0]:
        words = words[1:]
    plain = words and not any(char in words[0] for char in "$`(){};&|<>*?[]!~")
    return words[0] if plain else None
