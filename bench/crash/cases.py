"""What is landed while it crashes: nine small repositories, each with what comes in and what must
come of it.

A response changes two files, makes, deletes and renames one; a second one changes another file; a
third one quotes what is not there; and the first is delivered twice.  One hook looks at every
candidate.  Two of the objects to be made lie there empty already, as a power cut leaves them of
writes that somebody did not flush.  In one repository the batches expire that an older patchq
decided.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path
from typing import ClassVar

from bench.crash import aftermath, children
from bench.crash.aftermath import Report, git

Files = Mapping[str, str | None]
_TEXT = "".join(f"line {number}\n" for number in range(1, 30))
_BEFORE = {f"{name}.txt": f"{name}\n{_TEXT}" for name in ("one", "two", "three", "old", "gone")}
_HOOK = (
    "hooks:\n  - id: look\n    stage: pre-commit\n    run: test -s one.txt\n    unconfined: true\n"
)


def _edit(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def _edited(path: str, old: str, new: str) -> str:
    return _BEFORE[path].replace(f"{old}\n", f"{new}\n", 1)


_CHANGE = (
    _edit("one.txt", "line 7", "line seven")
    + _edit("two.txt", "line 9", "line nine")
    + "new/made.txt\n<<<<<<< SEARCH\n=======\nmade\n>>>>>>> REPLACE\n"
    + "gone.txt\n<<<<<<< DELETE\n>>>>>>> DELETE\n"
    + "old.txt\n<<<<<<< RENAME\nnew/moved.txt\n>>>>>>> RENAME\n"
)
_RESPONSES = {
    "change.md": _CHANGE,
    "other.md": _edit("three.txt", "line 11", "line eleven"),
    "wrong.md": _edit("three.txt", "line 99", "line"),
    "again.md": _CHANGE,
}
WORK: dict[str, Files] = {
    "change": {
        "one.txt": _edited("one.txt", "line 7", "line seven"),
        "two.txt": _edited("two.txt", "line 9", "line nine"),
        "new/made.txt": "made\n",
        "gone.txt": None,
        "old.txt": None,
        "new/moved.txt": _BEFORE["old.txt"],
    },
    "other": {"three.txt": _edited("three.txt", "line 11", "line eleven")},
}
_ASKS = {"change.md": "change", "other.md": "other", "wrong.md": None, "again.md": "change"}


@dataclass(frozen=True, slots=True)
class Case:
    """A way to land.  `accepts`: the crash comes while a person accepts, and not in a run."""

    name: str
    config: str
    target: str
    landed: Sequence[str]
    accepts: bool = False
    hook: str = _HOOK

    few: ClassVar[bool] = False
    """Whether two packs are many."""

    def prepare(self, repo: Path, said: Path) -> None:
        """Make the repository, with everything ready for the crash."""
        repo.mkdir(parents=True)
        git(repo, "init", "-q")
        # Git's upkeep would go on while the directory is moved, and leave its lock.
        git(repo, "config", "maintenance.auto", "false")
        for name, text in {**_BEFORE, ".patchq.yaml": self.config + self.hook}.items():
            (repo / name).write_text(text)
        git(repo, "add", ".")
        git(repo, "commit", "-q", "-m", "Start")
        if self.target != "main":
            git(repo, "branch", self.target)
        self._must(["-C", str(repo), "init"], said)
        self._damage(repo)
        for name, data in self.responses(repo).items():
            (repo / ".patchq/inbox" / name).write_bytes(data)
        if self.accepts:
            self._must(["-C", str(repo), "run"], said)

    def responses(self, repo: Path) -> dict[str, bytes]:
        """What comes in; each says that the first commit is its base."""
        base = git(repo, "rev-list", "--max-parents=0", self.target)
        return {
            name: f"---\nbase: {base}\n---\n{text}".encode()
            for name, text in _RESPONSES.items()
            if not self.accepts or name != "again.md"
        }

    def _must(self, words: Sequence[str], said: Path) -> None:
        if children.run(words, said) not in (0, 1):
            raise RuntimeError(f"patchq {' '.join(words)}: {said.read_text()}")

    def _damage(self, repo: Path) -> None:
        for name in ("new/made.txt", "one.txt"):
            oid = blob(WORK["change"][name] or "")
            place = repo / ".git/objects" / oid[:2] / oid[2:]
            place.parent.mkdir(exist_ok=True)
            place.touch(mode=0o444)

    def words(self, repo: Path) -> list[str]:
        return ["-C", str(repo), *(("accept", "change") if self.accepts else ("run",))]

    def goes_on(self, repo: Path) -> bool:
        """Whether the person has to ask once more, since the crash came before the decision."""
        told = aftermath.reports(repo / ".patchq") if self.accepts else []
        return any(r["id"] == "change" and r["state"] == "proposed" for r in told)

    def violations(self, repo: Path) -> Iterator[str]:
        """Everything that is not as it must be after the recovery."""
        queue = repo / ".patchq"
        sent = {
            (name, sha256(data).hexdigest()): _ASKS[name]
            for name, data in self.responses(repo).items()
        }
        told, past = aftermath.reports(queue), self.expired(repo)
        yield from aftermath.verdicts(queue, sent, told)
        yield from aftermath.decisions(sent, told, self.landed)
        yield from aftermath.store(queue)
        yield from aftermath.events(queue, told)
        yield from aftermath.history(repo, self.target, [*told, *past])
        yield from aftermath.references(repo, [*told, *past], ("main", "trunk"))
        for report in told:
            if report["state"] in self.landed:
                yield from _content(repo, report)
        yield from aftermath.repository(repo)
        yield from aftermath.work_tree(repo)

    def expired(self, repo: Path) -> list[Report]:
        """What is still told of batches that have no files any more."""
        return []


_MADE = "early.txt\n<<<<<<< SEARCH\n=======\nearly\n>>>>>>> REPLACE\n"
_EARLY = {
    "early.md": (_MADE, "applied"),
    "early-again.md": (_MADE, "duplicate"),
    "early-wrong.md": (_edit("three.txt", "line 98", "line"), "rejected"),
}
_DAYS = 40


class Expiry(Case):
    """Batches expire in the run that crashes."""

    def prepare(self, repo: Path, said: Path) -> None:
        super().prepare(repo, said)
        queue, base = repo / ".patchq", git(repo, "rev-list", "--max-parents=0", self.target)
        (queue / "inbox").rename(queue / "later")
        (queue / "inbox").mkdir()
        for name, (text, _) in _EARLY.items():
            (queue / "inbox" / name).write_text(f"---\nbase: {base}\n---\n{text}")
        self._must(["-C", str(repo), "run"], said)
        (queue / "inbox").rmdir()
        (queue / "later").rename(queue / "inbox")
        then = time.time() - _DAYS * 86_400
        with closing(sqlite3.connect(queue / "store.db", isolation_level=None)) as database:
            aged = "update responses set ended = ?, ending = ? + number"
            database.execute(aged, (then, int(then * 1e9)))
            database.execute("delete from meta where key like 'clock.%'")

    def violations(self, repo: Path) -> Iterator[str]:
        yield from super().violations(repo)
        states = {report["id"]: report["state"] for report in self.expired(repo)}
        if states != {Path(name).stem: state for name, (_, state) in _EARLY.items()}:
            yield f"of the expired batches is told {states}"
        counted = _told(repo, "stats")["rows"][0]["verdicts"]
        told = Counter(report["state"] for report in aftermath.reports(repo / ".patchq"))
        if counted != (wanted := dict(told + Counter(state for _, state in _EARLY.values()))):
            yield f"the statistics are {counted} instead of {wanted}"
        if _told(repo, "fsck")["damage"]:
            yield f"fsck finds {_told(repo, 'fsck')['damage']}"

    def expired(self, repo: Path) -> list[Report]:
        return [_told(repo, "show", Path(name).stem) for name in _EARLY]


def _told(repo: Path, *words: str) -> Report:
    """What a command answers, as JSON; nothing where it answers nothing."""
    said = repo.parent / "told.json"
    said.unlink(missing_ok=True)
    children.run(["-C", str(repo), "--json", *words], said)
    answer: Report = json.loads(said.read_bytes())
    return answer


def _content(repo: Path, report: Report) -> Iterator[str]:
    """The commit changes what was asked for, byte for byte, and nothing else."""
    work = WORK[str(_ASKS[report["source"]["name"]])]
    raw = git(repo, "diff-tree", "-r", "--no-renames", "--root", "--no-commit-id", report["commit"])
    found = {line.split("\t")[1]: line.split()[3] for line in raw.splitlines()}
    wanted = {path: blob(text) if text is not None else "0" * 40 for path, text in work.items()}
    if found != wanted:
        yield f"the commit of {report['id']} changes {found} instead of {wanted}"


class Many(Case):
    """One response that makes so many files that their objects are written as a pack."""

    def responses(self, repo: Path) -> dict[str, bytes]:
        base = git(repo, "rev-list", "--max-parents=0", self.target)
        new = (
            f"many/{n}/x.txt\n<<<<<<< SEARCH\n=======\n{n}\n>>>>>>> REPLACE\n" for n in range(40)
        )
        return {"many.md": f"---\nbase: {base}\n---\n{''.join(new)}".encode()}

    def _damage(self, repo: Path) -> None:
        """None: nothing of it would be written anew."""

    def violations(self, repo: Path) -> Iterator[str]:
        told = aftermath.reports(repo / ".patchq")
        if [report["state"] for report in told] != list(self.landed):
            yield f"the verdicts are {told}"
        yield from aftermath.history(repo, self.target, told)
        yield from aftermath.repository(repo)
        yield from aftermath.work_tree(repo)


class Packing(Many):
    """The same as the third of three such, where git combines two packs."""

    few: ClassVar[bool] = True

    def prepare(self, repo: Path, said: Path) -> None:
        super().prepare(repo, said)
        inbox = repo / ".patchq/inbox"
        many = (inbox / "many.md").read_bytes()
        for name in ("early", "later"):
            (inbox / "many.md").unlink(missing_ok=True)
            (inbox / f"{name}.md").write_bytes(many.replace(b"many/", name.encode() + b"/"))
            self._must(["-C", str(repo), "run"], said)
        (inbox / "many.md").write_bytes(many)

    def violations(self, repo: Path) -> Iterator[str]:
        yield from super().violations(repo)
        told = aftermath.reports(repo / ".patchq")
        yield from aftermath.references(repo, told, ("main", "trunk"))


class Branches(Case):
    """A branch has moved that the run takes by itself: its next tip is one response more, and takes
    the place of what the first proposed."""

    def prepare(self, repo: Path, said: Path) -> None:
        super().prepare(repo, said)
        for number in (1, 2):
            git(repo, "checkout", "-q", "-B", "agent/x", "agent/x" if number > 1 else "main")
            (repo / "one.txt").write_text(f"{number}\n")
            git(repo, "commit", "-q", "-a", "-m", f"Change {number}")
            git(repo, "checkout", "-q", "main")
            if number == 1:
                self._must(["-C", str(repo), "run"], said)

    def responses(self, repo: Path) -> dict[str, bytes]:
        return {}

    def _damage(self, repo: Path) -> None:
        """None: git itself makes the objects."""

    def violations(self, repo: Path) -> Iterator[str]:
        told = aftermath.reports(repo / ".patchq")
        states = {report["id"]: report["state"] for report in told}
        if states != (wanted := {"agent-x": "superseded", "agent-x-2": "proposed"}):
            yield f"the branch became {states} instead of {wanted}"
        yield from aftermath.history(repo, self.target, told)
        yield from aftermath.references(repo, told, ("main", "trunk", "agent/x"))
        yield from aftermath.repository(repo)
        yield from aftermath.work_tree(repo)


class Stack(Case):
    """A person accepts two batches at once, of which the second stands on the first."""

    def responses(self, repo: Path) -> dict[str, bytes]:
        high = "---\ndepends_on: [low]\n---\n" + _edit("three.txt", "line eleven", "line XI")
        return {"low.md": _RESPONSES["other.md"].encode(), "high.md": high.encode()}

    def _damage(self, repo: Path) -> None:
        """None: what lands is there already."""

    def words(self, repo: Path) -> list[str]:
        return ["-C", str(repo), "accept", "--stack", "high"]

    def goes_on(self, repo: Path) -> bool:
        told = aftermath.reports(repo / ".patchq")
        return any(r["id"] == "high" and r["state"] == "proposed" for r in told)

    def violations(self, repo: Path) -> Iterator[str]:
        told = aftermath.reports(repo / ".patchq")
        states = {report["id"]: report["state"] for report in told}
        if states != (wanted := {"low": "accepted", "high": "accepted"}):
            yield f"the stack became {states} instead of {wanted}"
        if any(report["stands_on"] for report in told):
            yield "a batch that landed still stands on another one"
        text = git(repo, "show", f"{self.target}:three.txt") + "\n"
        if text != _edited("three.txt", "line 11", "line XI"):
            yield f"three.txt became {text!r}"
        yield from _as_one(self, repo, told)


class SentBack(Case):
    """A person sends a proposal back."""

    def words(self, repo: Path) -> list[str]:
        return ["-C", str(repo), "send-back", "change", "-m", "say why"]

    def goes_on(self, repo: Path) -> bool:
        told = aftermath.reports(repo / ".patchq")
        return any(r["id"] == "change" and r["review"] is None for r in told)

    def violations(self, repo: Path) -> Iterator[str]:
        told = aftermath.reports(repo / ".patchq")
        (report,) = (report for report in told if report["id"] == "change")
        review = report["review"]
        said = [one["text"] for one in review["comments"]] if review else []
        if said != ["say why"] or review["state"] != "changes_requested":
            yield f"the report has {review}"
        if "say why" not in (report["retry"]["prompt"] or ""):
            yield "the prompt does not say what was asked for"
        note = git(repo, "notes", "--ref=patchq", "show", report["commit"])
        if note.count("say why") != 1 or "changes_requested" not in note:
            yield f"the note is {note!r}"
        yield from _as_one(self, repo, told)


def _as_one(case: Case, repo: Path, told: Sequence[Report]) -> Iterator[str]:
    """Refs, notes and reports agree, and the repository is sound."""
    if damage := _told(repo, "fsck")["damage"]:
        yield f"fsck finds {damage}"
    yield from aftermath.history(repo, case.target, told)
    yield from aftermath.references(repo, told, ("main", "trunk"))
    yield from aftermath.repository(repo)
    yield from aftermath.work_tree(repo)


def blob(text: str) -> str:
    """The id of the object that holds the text."""
    data = text.encode()
    return sha1(b"blob %d\0%b" % (len(data), data)).hexdigest()


CASES = {
    case.name: case
    for case in (
        Case("review", "version: 1\nmode: review\n", "main", ("proposed",)),
        Case("auto", "version: 1\nmode: auto\ntarget: trunk\n", "trunk", ("applied",)),
        Case("checkout", "version: 1\nmode: auto\ntarget: main\n", "main", ("applied",), hook=""),
        Case(
            "accept",
            "version: 1\nmode: review\n",
            "main",
            ("proposed", "accepted"),
            accepts=True,
        ),
        Stack("stack", "version: 1\nmode: review\n", "main", ("accepted",), accepts=True),
        SentBack("send-back", "version: 1\nmode: review\n", "main", ("proposed",), accepts=True),
        Packing("packing", "version: 1\nmode: auto\ntarget: trunk\n", "trunk", ("applied",) * 3),
        Branches(
            "branches",
            'version: 1\nmode: review\ntarget: main\nbranches: ["agent/*"]\n',
            "main",
            ("proposed",),
        ),
        Expiry(
            "expiry",
            "version: 1\nmode: auto\ntarget: trunk\nqueue: {retention_days: 30}\n",
            "trunk",
            ("applied",),
        ),
    )
}
