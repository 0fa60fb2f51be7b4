"""Room for n and no more: a small disk is full after n pages, or n files, or a process may open no
more than n, for every n up to the one that is enough.

A run that ends so is an orderly end.  It says what was short and nothing else, and leaves no lock,
no temporary file and no work tree on its way.  `patchq status` names it.  Once there is room, every
response gets its one verdict.  Exit 0 when nothing was violated, 1 otherwise, 3 where no disk can
be made.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.console import command_line, say, work_option
from bench.crash import aftermath, children, power
from bench.crash.aftermath import GitFailed, git
from bench.crash.cases import CASES as SMALL
from bench.crash.cases import Case, Many
from bench.git import HERMETIC

CASES = {**SMALL, "many": Many("many", SMALL["checkout"].config, "main", ("applied",))}
KINDS = {
    "pages": "No space left on device",
    "inodes": "No space left on device",
    "files": "Too many open files",
}
"""What is short, and the words that have to name it."""
_PAGE = 4096
_ENOUGH = 3
"""So many runs in a row that met nothing: what is left makes no difference."""
_LARGE = "size=64m,nr_inodes=20000"
_FEWEST_FILES = 8
"""With fewer Python does not find its own modules."""
_MOST = 2000
_BLAMES = re.compile(r"Traceback|fsck|damaged|fault\.crashed|defect")


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.crash.full", __doc__)
    add = parser.add_argument
    add("--case", choices=CASES, action="append", help="one way to land")
    add("--only", choices=KINDS, action="append", help="one thing that is short")
    add("--at", type=int, action="append", metavar="N", help="room for so many alone")
    add("--step", type=int, default=1, metavar="N", help="each so many only")
    work_option(parser, "where it works")
    return parser.parse_args(words)


@dataclass
class Disk:
    """A file system in memory at `at`, made anew for each run."""

    at: Path

    @property
    def repo(self) -> Path:
        return self.at / "repo"

    def make(self, ready: Path | None = None) -> None:
        self.at.mkdir(exist_ok=True)
        _call("mount", "-t", "tmpfs", "-o", _LARGE, "patchq", str(self.at))
        if ready:
            _call("cp", "-a", str(ready), str(self.repo))

    def leave(self, kind: str, room: int) -> None:
        """Have room for so many more, of pages or of inodes."""
        now = os.statvfs(self.at)
        used = now.f_blocks - now.f_bfree if kind == "pages" else now.f_files - now.f_ffree
        most = f"size={(used + room) * _PAGE}" if kind == "pages" else f"nr_inodes={used + room}"
        _call("mount", "-o", f"remount,{most}", str(self.at))

    def grow(self) -> None:
        _call("mount", "-o", f"remount,{_LARGE}", str(self.at))

    def remove(self) -> None:
        subprocess.run(["umount", "-l", str(self.at)], capture_output=True)


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise power.NoPower(f"{' '.join(command)}: {done.stderr.strip()}")


@dataclass
class Trial:
    """A case, prepared once at `ready`, to be run with little room."""

    case: Case
    disk: Disk
    ready: Path
    said: Path

    def run(self, kind: str, room: int) -> tuple[int | None, list[str]]:
        """The end of the run, and what is wrong with it or after it."""
        self.said.unlink(missing_ok=True)
        self.disk.make(self.ready)
        try:
            if kind != "files":
                self.disk.leave(kind, room)
            files = room if kind == "files" else 0
            code = children.run(self.case.words(self.disk.repo), self.said, files=files)
            wrong = [*self._at_once(kind, code)]
            self.disk.grow()
            return code, [*wrong, *self._afterwards()]
        except GitFailed as error:
            return None, [str(error)]
        finally:
            self.disk.remove()

    def _at_once(self, kind: str, code: int | None) -> Iterator[str]:
        """What is wrong with the end, while there is still no room."""
        said = self.said.read_text(errors="replace")
        if code not in (0, 1, 3):
            yield f"it ended with {code}"
        if found := _BLAMES.search(said):
            yield f"it blames something else: {found[0]}"
        if code == 3 and KINDS[kind] not in said:
            yield "it does not say what was short"
        yield from aftermath.left_behind(self.disk.repo)
        status = git(self.disk.repo, "--no-optional-locks", "status", "--porcelain")
        if status:
            yield f"the work tree does not show its branch: {status!r}"
        if code == 3 and not self.case.accepts:  # a person reads what their own command says
            answer = self.said.with_name("status.txt")
            answer.unlink(missing_ok=True)
            end = children.run(["-C", str(self.disk.repo), "status"], answer)
            if end != 0 or KINDS[kind] not in answer.read_text():
                yield f"`patchq status` ({end}) does not say what was short"

    def _afterwards(self) -> Iterator[str]:
        """What is wrong once there is room, and patchq ran again."""
        repo = self.disk.repo
        code = children.run(["-C", str(repo), "run"], self.said)
        if code not in (0, 1):
            yield f"the next start gave {code}"
        if self.case.goes_on(repo):
            code = children.run(self.case.words(repo), self.said)
            if code != 0:
                yield f"the person's second accept gave {code}"
        yield from self.case.violations(repo)


def sweep(trial: Trial, kind: str, rooms: Iterator[int]) -> tuple[Counter[str], list[str]]:
    """The ends that were met, and what was violated."""
    ends, wrong, quiet = Counter[str](), [], 0
    for room in rooms:
        code, found = trial.run(kind, room)
        ends[str(code)] += 1
        name = f"{trial.case.name}/{kind}/{room}"
        for sentence in found:
            say(f"VIOLATED {name}: {sentence}")
        if found:
            wrong.append(name)
            text = trial.said.read_text(errors="replace")[-1500:].strip()
            say("  | " + text.replace("\n", "\n  | "))
        quiet = quiet + 1 if code in (0, 1) and not found else 0
        if quiet >= _ENOUGH and not ends.keys() <= {"0", "1"}:
            break
    return ends, wrong


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    place = args.work or power.memory()
    if place is None or not (args.work is None or power.own_namespace()):
        say("bench.crash.full: only root can mount")
        return 3
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(
        prefix="patchq-full-", dir=place, ignore_cleanup_errors=True
    ) as scratch:
        work = Path(scratch)
        os.environ.update(HERMETIC | {"HOME": scratch, "TMPDIR": scratch})
        for name in args.case or CASES:
            trial = prepared(CASES[name], work)
            for kind in args.only or KINDS:
                began = time.monotonic()
                first = _FEWEST_FILES if kind == "files" else 0
                rooms = iter(args.at or range(first, _MOST, args.step))
                ends, found = sweep(trial, kind, rooms)
                wrong += found
                seconds = time.monotonic() - began
                print(f"{name:9} {kind:7} {ends.total():5} runs, by exit code {dict(ends)}, "
                      f"VIOLATED {len(found)}, {seconds:.0f} s", flush=True)  # fmt: skip
    print(f"VIOLATED {len(wrong)}")
    return int(bool(wrong))


def prepared(case: Case, work: Path) -> Trial:
    """The case on a disk of its own, copied to where it is ready."""
    disk, ready, said = Disk(work / "disk"), work / "ready" / case.name, work / "said.txt"
    disk.make()
    try:
        case.prepare(disk.repo, said)
        ready.parent.mkdir(exist_ok=True)
        shutil.copytree(disk.repo, ready, symlinks=True)
    finally:
        disk.remove()
    children.load(["-C", str(ready), "status"], work)
    return Trial(case, disk, ready, said)


if __name__ == "__main__":
    sys.exit(main())
