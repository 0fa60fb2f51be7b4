"""What both benches need of git and of processes: hermetic runs, small repositories, fast imports.

Repositories are made by hand (a handful of files) around hard links to packs that one
`git fast-import` wrote, so that a fresh one costs well under a millisecond and has no memory of
the case or the round before it.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tlogallrefupdates = true
\tbare = {bare}
[user]
\tname = Bench
\temail = bench@example.org
[gc]
\tauto = 0
[commit]
\tgpgsign = false
"""
HERMETIC = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": "7",
    "GIT_CONFIG_KEY_0": "user.name",
    "GIT_CONFIG_VALUE_0": "Bench",
    "GIT_CONFIG_KEY_1": "user.email",
    "GIT_CONFIG_VALUE_1": "bench@example.org",
    "GIT_CONFIG_KEY_2": "init.defaultBranch",
    "GIT_CONFIG_VALUE_2": "main",
    "GIT_CONFIG_KEY_3": "gc.auto",
    "GIT_CONFIG_VALUE_3": "0",
    "GIT_CONFIG_KEY_4": "core.checkStat",
    "GIT_CONFIG_VALUE_4": "minimal",
    "GIT_CONFIG_KEY_5": "init.defaultObjectFormat",
    "GIT_CONFIG_VALUE_5": "sha1",
    "GIT_CONFIG_KEY_6": "init.defaultRefFormat",
    "GIT_CONFIG_VALUE_6": "files",
}
"""Of a bench that calls git in its own environment."""
WHO = b"Bench <bench@example.org> 1700000000 +0000"


class BenchError(Exception):
    """The bench cannot measure, or what it measured is not what it should be."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process: wall time in seconds, peak resident memory in KiB, and its end."""

    seconds: float
    peak_kib: int
    code: int | None
    errors: str


def environment(home: Path) -> dict[str, str]:
    """The variables of every process that a bench starts: no configuration of the user's."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
    return kept | {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


def find_command(text: str) -> list[str]:
    """The command line under test; looked for beside this Python first, then on the PATH."""
    words = shlex.split(text)
    if not words:
        raise BenchError("--command is empty; name the command to measure")
    where = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    found = shutil.which(words[0], path=where)
    if found is None:
        raise BenchError(f"command {words[0]!r} not found; install the package or use --command")
    return [str(Path(found).absolute()), *words[1:]]


def git(cwd: Path, *words: str, home: Path, data: bytes | None = None) -> bytes:
    """Standard output of a git command that must succeed."""
    done = subprocess.run(
        ["git", *words], cwd=cwd, env=environment(home), input=data, capture_output=True
    )
    if done.returncode:
        raise BenchError(f"git {' '.join(words)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def data(content: bytes) -> bytes:
    """A `data` command of fast-import."""
    return b"data %d\n%b\n" % (len(content), content)


def quoted(path: str) -> bytes:
    """A path as fast-import reads it whatever bytes it holds."""
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def fast_import(repo: Path, stream: Iterable[bytes], *, home: Path) -> dict[int, str]:
    """Feed a fast-import stream into one pack; returns the object name of every mark."""
    marks = repo / "bench-marks"
    words = ["git", "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force"]
    with subprocess.Popen(
        [*words, f"--export-marks={marks}"], cwd=repo, env=environment(home), stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.writelines(stream)
    if process.returncode:
        raise BenchError(f"git fast-import in {repo} ended with {process.returncode}")
    lines = marks.read_text().split("\n")[:-1] if marks.exists() else []
    marks.unlink(missing_ok=True)
    return {int(mark[1:]): oid for mark, oid in (line.split() for line in lines)}


def new_store(path: Path, *, home: Path) -> Path:
    """An empty bare repository, for fast_import to fill."""
    git(path.parent, "init", "-q", "--bare", "--template=", "-b", "main", str(path), home=home)
    return path


def store_of(clone: Path, room: Path, *, home: Path) -> tuple[Path, str]:
    """A store with the history of a clone's HEAD on `main`, and the id (hex) of that commit."""
    store = new_store(room / "store.git", home=home)
    words = ("-c", "fetch.unpackLimit=1", "fetch", "-q", str(clone.absolute()))
    git(store, *words, "HEAD:refs/heads/main", home=home)
    return store, git(store, "rev-parse", "refs/heads/main", home=home).decode().strip()


def new_repository(
    path: Path, store: Path, refs: dict[str, str], *, head: str, bare: bool = False
) -> Path:
    """A repository at `path` with hard links to the store's packs; returns its git directory."""
    git_dir = path if bare else path / ".git"
    for directory in ("objects/info", "objects/pack", "refs/heads", "info"):
        (git_dir / directory).mkdir(parents=True)
    link_packs(store, git_dir)
    (git_dir / "HEAD").write_text(f"ref: refs/heads/{head}\n")
    (git_dir / "config").write_text(CONFIG.format(bare=str(bare).lower()))
    for name, oid in refs.items():
        (git_dir / "refs/heads" / name).write_text(oid + "\n")
    return git_dir


def link_packs(store: Path, git_dir: Path) -> None:
    """Hard links to those of the store's packs that the git directory does not have yet."""
    for pack in (store / "objects/pack").iterdir():
        link = git_dir / "objects/pack" / pack.name
        if pack.suffix in {".pack", ".idx"} and not link.exists():
            os.link(pack, link)


def peak_kib(pid: int) -> int:
    """The process's peak resident memory so far; 0 when it is gone.

    Not `ru_maxrss`: that begins with the size of the process that started it.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) if found else 0


def run(command: Sequence[str], cwd: Path, *, home: Path, timeout: float = 3600) -> Run:
    """Run to the end, or kill at the time limit (`code` is then None)."""
    log = home / f"stderr-{os.urandom(6).hex()}"
    with log.open("wb") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        peak, ended = 0, os.pidfd_open(process.pid)
        try:
            while not select.select([ended], [], [], 0.02)[0]:
                peak = max(peak, peak_kib(process.pid))
                if time.perf_counter() - began > timeout:
                    process.kill()
                    break
            seconds = time.perf_counter() - began
        finally:
            os.close(ended)
        late = seconds > timeout
        code = process.wait()
    text = log.read_text(errors="replace")
    log.unlink()
    return Run(seconds, peak, None if late else code, text)
