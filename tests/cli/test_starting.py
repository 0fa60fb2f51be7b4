"""What a verb does not need, it does not import: counted, not timed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.command import block, patchq

HEAVY = {
    "asyncio", "httpx", "httpx2", "importlib.resources", "mcp", "multiprocessing", "openai",
    "pathspec", "pydantic", "rapidfuzz", "rich", "starlette", "tree_sitter", "watchdog",
    "patchq.core.resolve", "patchq.gate.pipeline.session", "patchq.llm",
}  # fmt: skip
"""Packages that a command of daily use has no need of, and rooms that decide on responses."""
PRINTS = """
import sys
before = set(sys.modules)
from patchq.cli import main
code = main(sys.argv[1:])
print(*(set(sys.modules) - before), sep="\\n", file=sys.stderr)
sys.exit(code)
"""


def imported(repo: Path, *words: str) -> set[str]:
    """The modules that the command brought into its process, but for those of coverage."""
    command = [sys.executable, "-c", PRINTS, *words]
    environ = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    done = subprocess.run(command, cwd=repo, env=environ, capture_output=True, timeout=60)
    assert done.returncode == 0
    return set(done.stderr.decode().splitlines())


def test_verbs_of_daily_use(repo: Path) -> None:
    found = imported(repo, "--version")
    assert {name for name in found if name.startswith("patchq")} == {"patchq", "patchq.cli"}
    (repo / "response.md").write_text(block("a.txt", "one\n", "1\n"))
    patchq("apply", "response.md", cwd=repo)  # there is something to tell of
    for words in (("status",), ("log",), ("show", "response"), ("stop",)):
        found = imported(repo, *words)
        assert "pygit2" in found
        assert not found & HEAVY, words
