"""Something happens before each step of a train: a kill, or what a person or an agent does.

    python -m bench.train_steps [--deed WORD] [--every N] [--rounds N]

Four changes are accepted, of which two break each other.  Whatever happens, with a daemon beside or
without: the target's commits are of changes that were seen and checked, each is there once, and
reports and refs agree with that.  Exit 0 then, 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patchq.gate.hooks.sandbox import NO_SANDBOX
from tests.helpers import stepping
from tests.helpers.command import block, drop, fresh, report
from tests.helpers.gitrepo import GITCONFIG, git, make_repo, write_config

IDS = ("p0", "p1", "p2", "p3")
PAIR = "! { grep -q new p1.txt && grep -q new p2.txt; }"
PATCHQ = f"{shlex.quote(sys.executable)} -m patchq"
_COMMIT = "git commit-tree -p {0} -m 'By hand' $({1})"
_TREE = "export GIT_INDEX_FILE=.git/by-hand; git read-tree {0}; echo mine > mine.txt; "
_TREE += "git add mine.txt; rm mine.txt; git write-tree"
DEEDS = {
    "kill": "",
    "push": "echo > mine.txt; git add mine.txt; git commit -qm 'By hand' || rm -f mine.txt",
    "discard": f"{PATCHQ} discard p3",
    "answer": f"mv answer .patchq/inbox/again.md; {PATCHQ} -q run",
    "change": "git update-ref refs/heads/patchq/p3 $("
    + _COMMIT.format("patchq/p3", _TREE.format("patchq/p3")) + ")",
    "undo": f"{PATCHQ} accept --undo p3",
}  # fmt: skip
_LONGEST_SECONDS = 60.0


def made(place: Path) -> Path:
    """Return a repository with four proposals."""
    repo = make_repo(place / "repo", {f"{id}.txt": "old\n" for id in IDS})
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n/answer\n/began\n/ended\n")
    fresh("init", cwd=repo)
    write_config(repo, "version: 1\nmode: review\n")
    drop(repo / ".patchq", {f"{id}.md": block(f"{id}.txt", "old\n", "new\n") for id in IDS})
    fresh("run", cwd=repo)
    answer = block("p3.txt", "old\n", "other\n")
    (repo / "answer").write_text(f"---\nretries: p3\n---\n{answer}")
    return repo


@contextmanager
def daemon(repo: Path, *, runs: bool) -> Iterator[None]:
    """Have a daemon beside, if one is wanted."""
    if runs:
        fresh("watch", "--detach", cwd=repo)
    try:
        yield
    finally:
        if runs:
            fresh("stop", cwd=repo)


def refs(repo: Path, kind: str) -> set[str]:
    return set(git("for-each-ref", "--format=%(refname:lstrip=3)", kind, cwd=repo).split())


def case(origin: Path, step: int, deed: str, *, beside: bool) -> Iterator[str]:
    """Yield what is wrong after the deed; ends with `over` where the train has no such step."""
    with tempfile.TemporaryDirectory(dir=origin.parent) as place:
        repo = Path(place) / "repo"
        subprocess.run(["cp", "-a", origin, repo], check=True)
        line = f"{PAIR} && cat *.txt >> {repo.parent}/passed && echo . >> {repo.parent}/passed"
        (repo.parent / "passed").touch()
        hook = f"id: tests, stage: pre-commit, unconfined: true, run: '{line}'"
        write_config(repo, f"version: 1\nmode: review\nhooks: [{{{hook}}}]\n")
        line = DEEDS[deed] and f"touch began; {DEEDS[deed]}; touch ended"
        with daemon(repo, runs=beside):
            done = stepping.run(repo, step, line, "accept", *IDS)
            began = (repo / "began").exists() or done.returncode == stepping.DIED
            if not beside:
                fresh("run", cwd=repo, code=None)
            late = time.monotonic() + _LONGEST_SECONDS
            while time.monotonic() < late and (
                refs(repo, "refs/patchq/boarded")
                or (began and line and not (repo / "ended").exists())
            ):
                time.sleep(0.1)
        fresh("run", cwd=repo, code=None)
        if not began:
            yield "over"
        if "Traceback" in done.stderr:
            yield done.stderr.split("Traceback")[1]
        yield from wrong(repo, deed)


def _contents(repo: Path, commit: str) -> str:
    names = git("ls-tree", "--name-only", commit, cwd=repo).split()
    texts = (git("show", f"{commit}:{name}", cwd=repo) for name in names if name.endswith(".txt"))
    return "".join(f"{text}\n" for text in texts)


def wrong(repo: Path, deed: str) -> Iterator[str]:
    """Yield what must not be."""
    trailer = "%(trailers:key=Patchq-Batch,valueonly,separator=)"
    log = [
        line.split("\t")
        for line in git("log", f"--format=%H%x09{trailer}", "main", cwd=repo).splitlines()
    ]
    landed = Counter(id for _, id in log if id)
    passed = set((repo.parent / "passed").read_text().split(".\n"))
    checked = [_contents(repo, commit) in passed for commit, _ in log]
    if boarded := refs(repo, "refs/patchq/boarded"):
        yield f"marks are left: {boarded}"
    for id in IDS:
        now = report(repo / ".patchq", id)
        if landed[id] != (now["state"] == "accepted"):
            yield f"{id} is {now['state']}, and landed {landed[id]} times"
        at = next((number for number, (_, name) in enumerate(log) if name == id), -1)
        if landed[id] and not any(checked[: at + 1]):
            yield f"{id} landed unchecked"
        if (now["state"] == "proposed") != (id in refs(repo, "refs/patchq/waiting")):
            yield f"{id} is {now['state']}, and its mark says otherwise"
    texts = {id: git("show", f"main:{id}.txt", cwd=repo) for id in IDS}
    if texts["p1"] == texts["p2"] == "new\n":
        yield "the pair landed"
    if texts["p3"] == "other\n" or (deed == "change" and "mine.txt" in git(
        "ls-tree", "--name-only", "main", cwd=repo)):  # fmt: skip
        yield "something landed unseen"
    pushed = "commit: By hand" in git("reflog", "--format=%gs", "HEAD", cwd=repo)
    if pushed and "By hand" not in git("log", "--format=%s", "main", cwd=repo):
        yield "the push is lost"
    if git("status", "--porcelain", cwd=repo):
        yield "the work tree has changes"
    if (told := fresh("fsck", cwd=repo, code=None)).code:
        yield told.out + told.err


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deed", choices=DEEDS, action="append", help="this one alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each n-th step alone")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="so many times")
    args = parser.parse_args()
    os.environ[NO_SANDBOX] = "1"
    failed = 0
    with tempfile.TemporaryDirectory(prefix="steps-", dir="/dev/shm") as place:
        home = Path(place) / "home"
        home.mkdir()
        (home / ".gitconfig").write_text(GITCONFIG)
        os.environ |= {"HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig")}
        origin = made(Path(place))
        for deed, beside in ((d, b) for d in args.deed or DEEDS for b in (False, True)):
            step = cases = 0
            while True:
                found = [
                    e for _ in range(args.rounds) for e in case(origin, step, deed, beside=beside)
                ]
                if "over" in found:
                    break
                cases += args.rounds
                failed += len(found)
                for error in found:
                    print(f"{deed} before step {step}: {error}", flush=True)
                step += args.every
            where = "beside a daemon" if beside else "alone"
            print(f"{deed} {where}: {cases} cases at {step} steps", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
