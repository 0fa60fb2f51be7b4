"""What must hold after any crash, once patchq has started again: looked at from outside.

Each check yields one sentence for everything that is wrong.  Whoever torments a repository knows
what was sent: `Sent` says of each delivery, by its name and digest, which work it asked for, and
None where it had to be refused.  Deliveries of equal bytes ask for the same work, once.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

Report = dict[str, Any]
Sent = Mapping[tuple[str, str], Hashable | None]
LITTER = re.compile(r".*\.lock|patchq-.*|(?!tmp_(?:pack|idx)_)tmp_.*|pack_.*")
"""Of what `git repack` leaves in a power cut its own `git prune` takes care."""
TRAILER = "%(trailers:key=Patchq-Batch,valueonly,separator=%x2C)"


class GitFailed(Exception):
    """A git command that looks at the repository ended with an error."""


def git(repo: Path, *words: str) -> str:
    """Standard output of a git command, without the last newline; raises `GitFailed`."""
    done = subprocess.run(["git", *words], cwd=repo, capture_output=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise GitFailed(f"git {' '.join(words)} gave {done.returncode}: {said}")
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


def reports(queue: Path) -> list[Report]:
    """All verdicts, with the folder of each as `place`."""
    return [
        {**json.loads(path.read_bytes()), "place": folder}
        for folder in ("done", "rejected")
        for path in sorted((queue / folder).glob("*.report.json"))
    ]


def verdicts(queue: Path, sent: Sent, told: Sequence[Report]) -> Iterator[str]:
    """One report for each response, in the place that fits it, with the response beside it."""
    counted = Counter((r["source"]["name"], r["source"]["sha256"]) for r in told)
    for source in sent.keys() | counted.keys():
        wanted = int(source in sent)
        if counted[source] != wanted:
            yield f"{source[0]} has {counted[source]} verdicts instead of {wanted}"
    for folder in ("inbox", "active"):
        left = os.listdir(queue / folder)
        if left:
            yield f"{folder}/ still holds {sorted(left)}"
    for report in told:
        id, place = report["id"], queue / report["place"]
        if (report["state"] == "rejected") != (report["place"] == "rejected"):
            yield f"{id} is {report['state']} and lies in {report['place']}/"
        body = place / f"{id}.md"
        if not body.is_file():
            yield f"the response of {id} is not beside its report"
        elif sha256(body.read_bytes()).hexdigest() != report["source"]["sha256"]:
            yield f"the response of {id} is not what was sent"
        page = body.with_suffix(".report.md")
        if not page.is_file() or not page.stat().st_size:
            yield f"the page of {id} is missing or empty"
    files = sum(len(os.listdir(queue / folder)) for folder in ("done", "rejected"))
    if files != 3 * len(told):
        yield f"{files} files lie beside {len(told)} verdicts"


def decisions(sent: Sent, told: Sequence[Report], landed: Collection[str]) -> Iterator[str]:
    """Good ones are never refused, bad ones always are, and of equal ones a single one lands, with
    one of the states `landed`."""
    states: dict[tuple[str, Hashable | None], Counter[str]] = {}
    for report in told:
        source = report["source"]["name"], report["source"]["sha256"]
        if source in sent:
            states.setdefault((source[1], sent[source]), Counter())[report["state"]] += 1
    for (_, work), count in states.items():
        names = [name for name, what in sent.items() if what == work] if work else []
        who = f"{names[0][0]} ({work})" if names else "what had to be refused"
        if work is None:
            if count.keys() != {"rejected"}:
                yield f"{who} became {dict(count)}"
        elif not count.keys() <= {*landed, "duplicate"}:
            yield f"{who} became {dict(count)}"
        elif sum(count[state] for state in landed) != 1:
            yield f"{who} landed {sum(count[state] for state in landed)} times: {dict(count)}"


def history(repo: Path, target: str, told: Sequence[Report]) -> Iterator[str]:
    """Each batch that is called landed is in the target's history, once, and no other one is."""
    lines = git(repo, "log", f"--format={TRAILER} %H", target).split("\n")
    batches = Counter(line.split(" ")[0] for line in lines if not line.startswith(" "))
    commits = {line.split(" ")[1] for line in lines}
    done = [report for report in told if report["state"] in ("applied", "accepted")]
    wanted = Counter(report["id"] for report in done)
    for id in batches.keys() | wanted.keys():
        if batches[id] != wanted[id]:
            yield f"{target} has batch {id} {batches[id]} times, reports say {wanted[id]}"
    for report in done:
        if report["commit"] not in commits:
            yield f"{target} lacks the commit that the report on {report['id']} names"


def references(repo: Path, told: Sequence[Report], own: Collection[str]) -> Iterator[str]:
    """A branch and a mark for each proposal, nothing for any other; `own` are the person's
    branches."""
    lines = git(repo, "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
    refs = dict(line.split(" ") for line in lines if line)
    expected = {}
    for report in told:
        if report["state"] == "proposed":
            expected[f"refs/heads/patchq/{report['id']}"] = report["commit"]
            expected[f"refs/patchq/waiting/{report['id']}"] = report["commit"]
        elif report["state"] == "superseded":
            expected[f"refs/patchq/discarded/{report['id']}"] = report["commit"]
    aside = {f"refs/heads/{name}" for name in own}
    for name in (refs.keys() | expected.keys()) - aside:
        if name != "refs/notes/patchq" and refs.get(name) != expected.get(name):
            yield f"{name} is {refs.get(name)} instead of {expected.get(name)}"


def repository(repo: Path) -> Iterator[str]:
    """Sound by git's own judgement, and no lock or scratch file left."""
    try:
        git(repo, "fsck", "--strict", "--no-dangling")
    except GitFailed as failed:
        yield str(failed)
    gitdir = repo / ".git"
    left = [p for p in gitdir.rglob("*") if LITTER.fullmatch(p.name)]
    if left:
        yield f"left behind: {sorted(str(p.relative_to(gitdir)) for p in left)}"


def left_behind(repo: Path) -> Iterator[str]:
    """Locks and temporary files of a process that ended in order."""
    gitdir, queue = repo / ".git", repo / ".patchq"
    left = [p for p in gitdir.rglob("*") if LITTER.fullmatch(p.name)]
    left += [p for p in queue.rglob("*") if p.name.endswith(".tmp") and p.parent.name != "inbox"]
    if left:
        yield f"left behind: {sorted(str(p.relative_to(repo)) for p in left)}"


def work_tree(repo: Path) -> Iterator[str]:
    """It shows its branch, and a person can go on in it."""
    status = git(repo, "status", "--porcelain")
    if status:
        yield f"the work tree does not show its branch: {status!r}"
    (repo / "mine.txt").write_text("mine\n")
    git(repo, "add", "mine.txt")
    git(repo, "commit", "-q", "-m", "Mine")
    made = git(repo, "show", "--format=", "--name-only", "HEAD")
    if made != "mine.txt":
        yield f"the person's next commit changed {made.split()}"


def store(queue: Path) -> Iterator[str]:
    """The store is sound, and nothing in it is open."""
    with closing(sqlite3.connect(queue / "store.db")) as database:
        (sound,) = database.execute("pragma integrity_check").fetchone()
        if sound != "ok":
            yield f"the store is damaged: {sound}"
        open_rows = "select name, state from responses where state not in ('ended', 'gone')"
        if rows := database.execute(open_rows).fetchall():
            yield f"the store still has {rows}"


def events(queue: Path, told: Sequence[Report]) -> Iterator[str]:
    """Events tell of each batch, last of the state that it is in, and of no state twice."""
    happened: dict[str, list[str]] = {}
    with closing(sqlite3.connect(queue / "store.db")) as database:
        for batch, kind in database.execute("select batch, kind from events order by number"):
            happened.setdefault(batch, []).append(kind)
    for report in told:
        id, state = report["id"], report["state"]
        kinds = happened.get(id, [])
        if kinds[-1:] != ["refused" if state == "rejected" else state]:
            yield f"of {id}, which is {state}, the events are {kinds}"
        if len(set(kinds)) != len(kinds):
            yield f"of {id} something happened twice: {kinds}"
