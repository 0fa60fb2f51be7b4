"""The corpus bench's inner part: read cases, put one before the command, judge what it did.

The judge sees what any other program sees: git's refs and trees, the work tree, the queue's two
directories of verdicts.  It trusts none of them alone: an exact result needs the right branch on
the right parent with the right bytes at every path, one verdict, and an exit code that agrees.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.git import (
    WHO,
    BenchError,
    Run,
    data,
    fast_import,
    git,
    new_repository,
    new_store,
    quoted,
    run,
)

OutcomeName = Literal["exact", "refused", "wrong"]
EXPECTED: dict[str, frozenset[str]] = {
    "exact": frozenset({"exact"}),
    "refuse": frozenset({"refused"}),
    "exact_or_refuse": frozenset({"exact", "refused"}),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A response, the files it is for, and what may come of it; a file that is None is absent."""

    id: str
    source: str
    format: str
    slip: str
    response: bytes
    before: dict[str, bytes]
    after: dict[str, bytes | None]
    expect: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case; `why` tells of a wrong one, `problems` are the report's."""

    case: Case
    outcome: OutcomeName
    why: str
    problems: tuple[str, ...]
    seconds: float

    @property
    def expected(self) -> bool:
        return self.outcome in EXPECTED[self.case.expect]


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file of JSON lines, gzipped or plain; raises BenchError with the line."""
    with path.open("rb") as probe:
        zipped = probe.read(2) == b"\x1f\x8b"
    blobs: dict[str, bytes] = {}
    with gzip.open(path) if zipped else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if "blob" in record:
                    blobs[record["blob"]] = encode(record["text"])
                else:
                    yield _case(record, blobs)
            except (ValueError, KeyError, TypeError) as error:
                raise BenchError(f"{path}:{number}: not a blob or a case: {error!r}") from error


def _case(record: dict[str, Any], blobs: dict[str, bytes]) -> Case:
    if record["expect"] not in EXPECTED:
        raise ValueError(f"expect: {record['expect']!r}, known: {', '.join(EXPECTED)}")
    return Case(
        id=record["id"],
        source=record["source"],
        format=record["format"],
        slip=record.get("slip") or "none",
        response=encode(record["response"]),
        before={path: blobs[name] for path, name in record["before"].items()},
        after={path: None if n is None else blobs[n] for path, n in record["after"].items()},
        expect=record["expect"],
    )


class Court:
    """Puts cases before a command, each in a repository of its own."""

    def __init__(self, room: Path, cases: Sequence[Case], command: list[str], bare: bool) -> None:
        self.room, self.command, self.bare = room, command, bare
        self.home = room / "home"
        self.home.mkdir()
        self.store = new_store(room / "store.git", home=self.home)
        marks = fast_import(self.store, _stream(cases), home=self.home)
        self.roots = {case.id: marks[index] for index, case in enumerate(cases, 1)}

    def try_case(self, case: Case) -> tuple[Result, Path]:
        """Run the command on one case; the repository is left for the caller to look into."""
        repo = self.room / "cases" / hashlib.sha256(case.id.encode()).hexdigest()[:16]
        root = self.roots[case.id]
        git_dir = new_repository(repo, self.store, {"main": root}, head="main", bare=self.bare)
        if not self.bare:
            git(repo, "read-tree", "--reset", "-u", "main", home=self.home)
        inbox = repo / ".patchq" / "inbox"
        inbox.mkdir(parents=True)
        index = None if self.bare else (git_dir / "index").read_bytes()
        part = inbox / ".writing"
        part.write_bytes(case.response)
        part.rename(inbox / (safe_name(case.id) + ".md"))
        ended = run([*self.command, "run"], repo, home=self.home, timeout=120)
        outcome: OutcomeName = "wrong"
        try:
            reports = list(read_reports(repo))
        except ValueError as error:
            reports, why = [], f"a report is not JSON: {error}"
        else:
            outcome, why = self._judge(case, repo, ended, reports)
        if not self.bare and _work_tree(repo) != case.before:
            outcome, why = "wrong", "the work tree was touched"
        if index is not None and (git_dir / "index").read_bytes() != index:
            outcome, why = "wrong", "the index was touched"
        problems = tuple(_problem(p) for _, r in reports for p in r.get("problems") or ())
        if ended.errors.strip() and outcome == "wrong":
            why += "; it said: " + ended.errors.strip().splitlines()[-1]
        return Result(case, outcome, why, problems, ended.seconds), repo

    def _judge(
        self, case: Case, repo: Path, ended: Run, reports: list[tuple[str, dict[str, Any]]]
    ) -> tuple[OutcomeName, str]:
        if ended.code is None:
            return "wrong", "still running at the time limit"
        if len(reports) != 1:
            return "wrong", f"{len(reports)} verdicts (exit {ended.code})"
        (place, report), refs = reports[0], self.refs(repo)
        trouble = _verdict_trouble(case, repo, place, report)
        if trouble:
            return "wrong", trouble
        root = self.roots[case.id]
        if refs.pop("refs/heads/main", ("",))[0] != root:
            return "wrong", "main was moved"
        if (place, report.get("state"), ended.code) == ("rejected", "rejected", 1):
            return ("wrong", f"refused, but left {', '.join(refs)}") if refs else ("refused", "")
        if (place, report.get("state"), ended.code) != ("done", "proposed", 0):
            return "wrong", f"state {report.get('state')} in {place}/, exit {ended.code}"
        branch = f"refs/heads/patchq/{report['id']}"
        heads = sorted(name for name in refs if name.startswith("refs/heads/"))
        if heads != [branch]:
            return "wrong", f"branches {', '.join(heads) or 'none'} instead of {branch}"
        if refs[branch][1:] != (root,):
            return "wrong", f"{branch} is not one commit on main"
        wanted = {path: content for path, content in case.after.items() if content is not None}
        wanted |= {p: c for p, c in case.before.items() if p not in case.after}
        expected = {path: f"100644 blob {blob_name(content)}" for path, content in wanted.items()}
        found = self.listing(repo, branch)
        differ = sorted(p for p in found.keys() | expected if found.get(p) != expected.get(p))
        return ("wrong", f"other content: {', '.join(differ)}") if differ else ("exact", "")

    def refs(self, repo: Path) -> dict[str, tuple[str, ...]]:
        """Each ref's commit and that commit's parents."""
        shape = "--format=%(refname) %(objectname) %(parent)"
        lines = git(repo, "for-each-ref", shape, home=self.home).decode().splitlines()
        return {name: tuple(oids) for name, *oids in (line.split() for line in lines)}

    def listing(self, repo: Path, commit: str) -> dict[str, str]:
        """`mode type object` of every path of a commit."""
        out = git(repo, "ls-tree", "-r", "-z", "--full-tree", commit, home=self.home)
        pairs = (line.split("\t", 1) for line in out.decode(errors="surrogateescape").split("\0"))
        return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def _stream(cases: Iterable[Case]) -> Iterator[bytes]:
    """A root commit per case; its mark is the case's place, counted from 1."""
    for index, case in enumerate(cases, 1):
        yield b"commit refs/bench/%d\nmark :%d\ncommitter %b\n" % (index, index, WHO)
        yield data(b"before\n")
        for path, content in case.before.items():
            yield b"M 100644 inline %b\n" % quoted(path)
            yield data(content)
        yield b"\n"


def _verdict_trouble(case: Case, repo: Path, place: str, report: dict[str, Any]) -> str:
    """What is wrong with the verdict itself, or nothing."""
    queue = repo / ".patchq"
    digest = hashlib.sha256(case.response).hexdigest()
    source = report.get("source") or {}
    if source.get("name") != safe_name(case.id) + ".md" or source.get("sha256") != digest:
        return f"the report answers {source}"
    kept = queue / place / f"{report.get('id')}.md"
    if not kept.is_file() or kept.read_bytes() != case.response:
        return f"the response is not kept as {place}/{kept.name}"
    if not (queue / place / f"{report['id']}.report.md").is_file():
        return "there is no report for a model"
    left = [entry.name for entry in (queue / "inbox").iterdir()]
    return f"the inbox still holds {', '.join(left)}" if left else ""


def read_reports(repo: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON report of the queue, with the directory that it is in."""
    for place in ("done", "rejected"):
        for path in sorted((repo / ".patchq" / place).glob("*.report.json")):
            yield place, json.loads(path.read_bytes())


def _problem(problem: dict[str, Any]) -> str:
    where = f" {problem['path']}" if problem.get("path") else ""
    line = f":{problem['line']}" if problem.get("line") else ""
    message = str(problem.get("message", "")).split("\n", 1)[0]
    return f"{problem.get('code')}{where}{line} {message}"[:160]


def _work_tree(repo: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for directory, inner, names in os.walk(repo):
        if Path(directory) == repo:
            inner[:] = [name for name in inner if name not in {".git", ".patchq"}]
        for name in names:
            path = Path(directory, name)
            found[str(path.relative_to(repo))] = path.read_bytes()
    return found


def safe_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)


def blob_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
