"""Transcripts on pages: the commands as they stand there, with what they really print.

A block of text that begins with `$ ` is one; those of a page are one session of a shell.
`python -m tests.helpers.transcript` writes the output anew, and a test compares.  Commits, which
differ from run to run, get the same letters each time, and long lines are cut.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

from examples import demo
from tests.helpers.pages import ROOT

PAGES: dict[str, dict[str, str]] = {"README.md": demo.RESPONSES, "docs/tutorial.md": {}}
"""Each page with the responses that its repository has a verdict on."""
WIDTH = 110
_BLOCK = re.compile(r"(?<=^```text\n)\$ .*?(?=^```$)", re.M | re.S)
_COMMAND = re.compile(r"^\$ (?:.*<<'EOF'\n(?:.*\n)*?EOF|.*)\n", re.M)
_MARK = "-- next command --"


def made(page: str) -> str:
    """Return the page with the output of its commands as it is now."""
    text = (ROOT / page).read_text("utf-8")
    commands = _COMMAND.findall("".join(_BLOCK.findall(text)))
    with tempfile.TemporaryDirectory() as place:
        outputs = iter(list(_outputs(Path(place), page, commands)))
    return _BLOCK.sub(
        lambda block: "".join(found[0] + next(outputs) for found in _COMMAND.finditer(block[0])),
        text,
    )


def _outputs(place: Path, page: str, commands: list[str]) -> Iterator[str]:
    """Yield what each command prints, for a person who has patchq and git alone."""
    home, programs = place / "home/you", place / "bin"
    home.mkdir(parents=True)
    programs.mkdir()
    (programs / "patchq").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m patchq "$@"\n')
    (programs / "patchq").chmod(0o755)
    env = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    for role in ("GIT_AUTHOR", "GIT_COMMITTER"):
        env |= {f"{role}_NAME": "You", f"{role}_EMAIL": "you@example.org"}
    lines = ["exec 2>&1", *_before(page)]
    for command in commands:
        lines += [f"echo '{_MARK}'", command.removeprefix("$ ").rstrip("\n")]
    done = subprocess.run(
        ["bash"],
        cwd=home,
        env={**env, "LANG": "C.UTF-8"},
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    for output in _steady(done.stdout.replace(str(place), "")).split(f"{_MARK}\n")[1:]:
        yield "".join(f"{_cut(line)}\n" for line in output.splitlines())


def _cut(line: str) -> str:
    return (line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…").rstrip()


def _steady(text: str) -> str:
    """Return the text without what differs from run to run."""
    commits: dict[str, str] = {}

    def letters(found: re.Match[str]) -> str:
        known = commits.setdefault(found[0][:7], sha1(str(len(commits)).encode()).hexdigest())
        return known[: len(found[0])]

    text = re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b", letters, text)
    return re.sub(r"\b\d+s\b", "2s", re.sub(r"process \d+", "process 4242", text))


def _before(page: str) -> Iterator[str]:
    """Yield the lines that make the repository of a page that begins with one."""
    if not PAGES[page]:
        return
    yield "git init -q -b main . && mkdir src"
    yield f"cat > src/login.py <<'EOF'\n{demo.LOGIN}EOF"
    yield "git add . && git commit -qm Start && patchq init >/dev/null"
    for name, text in PAGES[page].items():
        yield f"cat > .patchq/inbox/{name}.md <<'EOF'\n{text}EOF\npatchq run >/dev/null"


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(made(page), "utf-8")
