"""The command, as users call it.

`fresh` starts `python -m patchq`.  `patchq` gives the words to one process that all tests share:
most of a short command's time goes into starting Python and loading libraries.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.ending import MOST_SECONDS, line_of
from tests.helpers.gitrepo import git

_CHECKOUT = Path(__file__).parents[2]


class Done(NamedTuple):
    """What a command that ended said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def patchq(
    *words: str,
    cwd: Path,
    stdin: str | bytes = b"",
    code: int | None = 0,
    umask: int = 0o022,
) -> Done:
    """Run a command; an exit code other than the expected one, if any is, fails the test."""
    process = _shared()
    assert process.stdin
    data = stdin.encode() if isinstance(stdin, str) else stdin
    process.stdin.write(
        json.dumps([words, str(cwd), dict(os.environ), data.decode("latin-1"), umask])
    )
    process.stdin.write("\n")
    process.stdin.flush()
    try:
        done = Done(*json.loads(line_of(process.stdout)))
    except (AssertionError, ValueError):
        process.kill()
        close()
        raise AssertionError(f"patchq {' '.join(words)} goes on and on, or ended us") from None
    return _checked(words, done, code)


def fresh(*words: str, cwd: Path, stdin: str | bytes = b"", code: int | None = 0) -> Done:
    """The same, by a process of its own."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    command = [sys.executable, "-m", "patchq", *words]
    done = subprocess.run(command, cwd=cwd, input=data, capture_output=True, timeout=MOST_SECONDS)
    told = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
    return _checked(words, told, code)


def _checked(words: tuple[str, ...], done: Done, code: int | None) -> Done:
    said = f"patchq {' '.join(words)} exited {done.code}:\n{done.out}{done.err}"
    assert code is None or done.code == code, said
    assert "Traceback" not in done.err, said
    return done


def drop(queue: Path, responses: Mapping[str, str | bytes]) -> None:
    """Put responses into the inbox as a careful agent does: by renaming."""
    for name, text in responses.items():
        scratch = queue / "inbox" / f".{name}"
        scratch.write_bytes(text.encode() if isinstance(text, str) else text)
        scratch.rename(queue / "inbox" / name)


def report(queue: Path, id: str) -> dict[str, Any]:
    """The batch's report, wherever it stands."""
    found = [*queue.glob(f"*/{id}.report.json")]
    assert len(found) == 1, f"{id} has the reports {found}"
    told: dict[str, Any] = json.loads(found[0].read_bytes())
    return told


def seen(queue: Path, id: str) -> dict[str, Any] | None:
    """The batch's report as it is now, for those who look while others work: on its way from one
    place to the next it stands in both for a moment.  None while there is none."""
    for place in ("done", "rejected", "active", "done", "rejected"):
        with contextlib.suppress(FileNotFoundError):
            told: dict[str, Any] = json.loads((queue / place / f"{id}.report.json").read_bytes())
            return told
    return None


def given(repo: Path, responses: Mapping[str, str | bytes]) -> dict[str, dict[str, Any]]:
    """Return the reports on responses, by their names; the repository is sound afterwards."""
    drop(repo / ".patchq", {f"{name}.md": text for name, text in responses.items()})
    patchq("run", cwd=repo, code=None)
    git("fsck", "--strict", "--no-dangling", cwd=repo)
    found = [json.loads(path.read_bytes()) for path in (repo / ".patchq").glob("*/*.report.json")]
    return {told["source"]["name"].removesuffix(".md"): told for told in found}


def errors(report: Mapping[str, Any]) -> list[str]:
    """The codes of a report's errors."""
    return [problem["code"] for problem in report["problems"] if problem["severity"] == "error"]


def call(path: str, text: str = "new\n") -> str:
    """A call that writes a file, which carries any path as it is."""
    return json.dumps({"name": "write_file", "arguments": {"path": path, "content": text}})


def give(repo: Path, id: str, response: str, code: int | None = 0) -> dict[str, Any]:
    """The report of a response that is dropped and worked off."""
    drop(repo / ".patchq", {f"{id}.md": response})
    patchq("run", cwd=repo, code=code)
    return report(repo / ".patchq", id)


def work(repo: Path, **responses: str) -> list[dict[str, Any]]:
    """Have the responses worked off; their reports."""
    drop(repo / ".patchq", {f"{id}.md": text for id, text in responses.items()})
    patchq("run", cwd=repo, code=None)
    return [report(repo / ".patchq", id) for id in responses]


def codes(told: dict[str, Any]) -> list[tuple[str, str]]:
    """The codes of a report's problems, with their severity."""
    return [(problem["code"], problem["severity"]) for problem in told["problems"]]


def block(path: str, old: str, new: str) -> str:
    """One SEARCH/REPLACE block; both halves are whole lines."""
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


@cache
def _shared() -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-m", __name__], subprocess.PIPE
    return subprocess.Popen(command, cwd=_CHECKOUT, stdin=pipe, stdout=pipe, text=True)


def close() -> None:
    """End the shared process, if there is one; it ends with its input."""
    if not _shared.cache_info().currsize:
        return
    process = _shared()
    _shared.cache_clear()
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    try:
        process.wait(MOST_SECONDS)
    finally:
        process.kill()
        process.stdout.close()  # whoever else has it is not waited for


def _become(cwd: str, environ: Mapping[str, str]) -> None:
    """Take over a directory and an environment, of which libgit2 learns, too."""
    import pygit2
    from pygit2.enums import ConfigLevel

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.PROGRAMDATA):
        pygit2.settings.search_path[level] = ""
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = environ["HOME"]


def _serve() -> None:
    from patchq.cli import main

    requests, replies = sys.stdin, sys.stdout
    for line in requests:
        words, cwd, environ, stdin, umask = json.loads(line)
        os.umask(umask)
        _become(cwd, environ)
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode("latin-1")))
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        err = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        told = out.buffer.getvalue().decode("utf-8", "surrogateescape")
        print(json.dumps((code, told, err.getvalue())), file=replies, flush=True)


if __name__ == "__main__":
    _serve()
