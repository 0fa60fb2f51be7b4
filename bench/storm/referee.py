"""Judges what became of the responses of a storm.

It believes the authors of responses and of commits by hand in what they meant, the reports in what
they say of a verdict, and git in everything else; of the command under test it uses nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.storm.facts import Changes, Commit, Facts, blob_id
from bench.storm.intent import MISQUOTED, WAITING, Intent, Record
from bench.storm.ort import apart, merged
from bench.storm.rule import Judge, Result

Report = dict[str, Any]
_REFUSALS = frozenset({"conflict.base"})
_REFUSED_CREATIONS = _REFUSALS | {"path.exists"}


@dataclass(frozen=True, slots=True)
class Storm:
    """What was done: `start` is where the target was, `by_hand` the commits made by hand with
    what each of them changed."""

    repo: Path
    target: str
    start: str
    records: Sequence[Record]
    by_hand: Mapping[str, Result]

    @property
    def queue(self) -> Path:
        return self.repo / ".patchq"


@dataclass(slots=True)
class Finding:
    """What the referee found: violations, and how many of each kind of verdict there were."""

    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    states: dict[str, str] = field(default_factory=dict)
    """The state of each response, by its name."""

    @property
    def landed(self) -> frozenset[str]:
        return frozenset(name for name, state in self.states.items() if state == "applied")


@dataclass(frozen=True, slots=True)
class _Landing:
    """A landing on a moved base, which git's own merge is asked about."""

    what: str
    seen: Intent
    tip: str
    tree: str


def judge(storm: Storm, home: Path, room: Path) -> Finding:
    """Everything there is to object; `room` becomes a repository for git's own merges."""
    facts = Facts(storm.repo, home)
    try:
        return _Referee(storm, facts, room).judge()
    finally:
        facts.close()


class _Referee:
    def __init__(self, storm: Storm, facts: Facts, room: Path) -> None:
        self.storm, self.facts = storm, facts
        self.store = apart(room, storm.repo, facts.home)
        self.rule = Judge(facts)
        self.found = Finding()
        self.tip = facts.oid(f"refs/heads/{storm.target}")
        self.history = facts.history(storm.start, self.tip)
        self.commits = {commit.oid: commit for commit in self.history}
        self.line = set(facts.git("rev-list", "--first-parent", self.tip).split())
        self.landings: list[_Landing] = []
        self.landed: dict[str, Result] = dict(storm.by_hand)

    def object_to(self, what: str, why: str) -> None:
        self.found.violations.append(f"{what}: {why}")

    def judge(self) -> Finding:
        told = self._reports()
        for record in self.storm.records:
            reports = told.pop(record.sha256, [])
            if len(reports) == 1:
                self._response(record, reports[0])
            else:
                self.object_to(record.sent, f"{len(reports)} verdicts")
        for reports in told.values():
            self.object_to(reports[0]["source"]["name"], "a report on what nobody sent")
        self._hands()
        self._replay()
        self._merges()
        complaints = self.facts.complaints()
        if complaints:
            self.object_to("git fsck", complaints)
        return self.found

    def _reports(self) -> dict[str, list[Report]]:
        """The reports by the sha256 of what they answer."""
        told: dict[str, list[Report]] = {}
        for place in ("done", "rejected", "active"):
            for path in sorted((self.storm.queue / place).rglob("*.report.json")):
                report: Report = json.loads(path.read_bytes())
                told.setdefault(report["source"]["sha256"], []).append(report)
        return told

    # ------------------------------------------------------------ one response

    def _response(self, record: Record, report: Report) -> None:
        intent, state = record.intent, str(report["state"])
        self.found.states[intent.name] = state
        self.found.counts[state] += 1
        if intent.aim == MISQUOTED:
            self._misquoted(record, report)
            return
        seen = self._seen(record, report)
        if state == "applied" and intent.aim == WAITING:
            self.object_to(record.sent, "landed without a person")
        elif state == "applied":
            commit = self.commits.get(report["commit"])
            if commit is None:
                self.object_to(record.sent, f"its commit {report['commit']} is not on the target")
                return
            if intent.blind and not intent.declared:
                self.object_to(record.sent, "landed unseen, though it says nothing of its base")
            self._commit(record, report, commit, seen)
        elif state == "proposed":
            self._proposed(record, report, seen)
        elif state == "rejected":
            self._refused(record, report, seen)
        else:
            self.object_to(record.sent, f"ended as {state}")

    def _seen(self, record: Record, report: Report) -> Intent:
        """The intent on the base that it was taken to mean.  A quote that stands there in almost
        the same words is judged on its author's own base."""
        intent, base = record.intent, report["base"] or {"commit": None, "how": None}
        if intent.declared:
            if (base["commit"], base["how"]) != (intent.base, "declared"):
                self.object_to(record.sent, f"its base {intent.base} became {base}")
            return intent
        if base["commit"] in (None, intent.base):
            return intent
        if base["commit"] not in self.line:
            self.object_to(record.sent, f"its base {base} is no commit of the target")
        return self.rule.relocated(intent, base["commit"]) or intent

    def _commit(self, record: Record, report: Report, commit: Commit, seen: Intent) -> None:
        """A commit of the batch does what the rule allows, and nothing else."""
        parent = commit.parents[0]
        for line in (f"Patchq-Batch: {report['id']}", f"Patchq-Source: sha256:{record.sha256}"):
            if line not in commit.message.split("\n"):
                self.object_to(record.sent, f"{commit.oid} lacks the trailer {line}")
        allowed = list(self.rule.results(seen, seen.base, parent))
        made = next((result for result in allowed if _is(result, commit.changes)), None)
        if made is None and not allowed:
            why = self.rule.refusal(seen, seen.base, parent) or "the rule forbids it"
            self.object_to(record.sent, f"{commit.oid} landed although {why}")
        elif made is None:
            self.object_to(record.sent, f"{commit.oid} is not what was asked for on {parent}")
        if commit.oid in self.landed:
            self.object_to(record.sent, f"{commit.oid} is another one's, too")
        self.landed[commit.oid] = made or {}
        if seen is not record.intent and made is not None:
            meant = list(self.rule.results(record.intent, record.intent.base, parent))
            if meant and made not in meant:
                self.object_to(record.sent, f"{commit.oid} is not where its author meant it")
        if seen.base != parent:
            tree = self.facts.oid(f"{commit.oid}^{{tree}}")
            self.landings.append(_Landing(record.sent, seen, parent, tree))

    def _misquoted(self, record: Record, report: Report) -> None:
        """What quotes lines that stand nowhere is refused for that."""
        codes = {p["code"] for p in report["problems"] if p["severity"] == "error"}
        if (report["state"], codes) != ("rejected", {"match.none"}):
            self.object_to(record.sent, f"is {report['state']} for {sorted(codes)}, not match.none")

    def _proposed(self, record: Record, report: Report, seen: Intent) -> None:
        warned = {p["code"] for p in report["problems"]}
        touched = {path for result in self.storm.by_hand.values() for path in result}
        unseen = record.intent.blind and not record.intent.declared and "base.unknown" in warned
        branch = self.facts.object(f"refs/heads/{report['branch']}")
        if branch is None or branch[0] != report["commit"]:
            self.object_to(record.sent, f"{report['branch']} is not at {report['commit']}")
            return
        commit = self.facts.commit(branch[0])
        parent = commit.parents[0]
        if parent not in self.facts.first_parents(record.before, self.tip):
            self.object_to(record.sent, f"{commit.oid} does not stand on the target")
        made_again = parent not in self.facts.first_parents(record.before, record.after)
        dirty = bool(touched & record.intent.paths) and ("worktree.dirty" in warned or made_again)
        asked = record.intent.aim == WAITING or "path.review" in warned
        if not unseen and not dirty and not asked:
            self.object_to(record.sent, f"proposed for {', '.join(sorted(warned)) or 'nothing'}")
        if not unseen:
            self._commit(record, report, commit, seen)

    def _refused(self, record: Record, report: Report, seen: Intent) -> None:
        errors = [p for p in report["problems"] if p["severity"] == "error"]
        codes = {problem["code"] for problem in errors}
        creates = any(edit.op == "create" for edit in record.intent.edits)
        tips = self.facts.first_parents(record.before, record.after)
        if codes == {"match.ambiguous"} and not record.intent.declared:
            if not any(self.rule.ambiguous(record.intent, tip) for tip in tips):
                self.object_to(record.sent, "is called ambiguous, and is not")
            return
        if not codes or codes - (_REFUSED_CREATIONS if creates else _REFUSALS):
            self.object_to(record.sent, f"refused for {errors}")
            return
        excused = any(
            self.rule.refusal(intent, intent.base, tip) or self._differs(seen, tip)
            for tip in tips
            for intent in (seen, record.intent)
        )
        if not excused:
            self.object_to(record.sent, f"refused without reason: {errors[0]['message']}")
        for problem in errors:
            if problem["code"] == "conflict.base":
                self._named(record, problem, seen.base)

    def _named(self, record: Record, problem: Report, base: str) -> None:
        """The commit that a conflict names came after the base and changed the file."""
        hit = problem["conflicts_with"] or {}
        oid, path = hit.get("commit"), hit.get("path") or problem["path"]
        if oid not in self.facts.first_parents(base, record.after)[1:]:
            self.object_to(record.sent, f"names {oid}, which did not land since {base}: {problem}")
            return
        commit = self.facts.commit(oid)
        batch = [line[14:] for line in commit.message.split("\n") if line[:13] == "Patchq-Batch:"]
        if path not in commit.changes:
            self.object_to(record.sent, f"names {oid}, which did not change {path}")
        if hit.get("batch") != (batch[0] if batch else None):
            self.object_to(record.sent, f"names batch {hit.get('batch')} for {oid}")
        elif batch and hit.get("agent") != batch[0].partition("-")[0]:
            self.object_to(record.sent, f"names agent {hit.get('agent')} for {oid} of {batch[0]}")

    # ------------------------------------------------------------ all of them

    def _hands(self) -> None:
        """Every commit by hand is there and did what it was to do; every other one is a batch's."""
        for oid, meant in self.storm.by_hand.items():
            commit = self.commits.get(oid)
            if commit is None:
                self.object_to(oid, "a commit by hand is lost")
            elif not _is(meant, commit.changes):
                self.object_to(oid, f"a commit by hand changed {sorted(commit.changes)}")
        for commit in self.history:
            if commit.oid not in self.landed or len(commit.parents) != 1:
                self.object_to(commit.oid, "nobody's commit is on the target")

    def _replay(self) -> None:
        """What landed, one after another from the start, gives the target's tree."""
        tree = self._tree(self.storm.start)
        for commit in self.history:
            for path, text in self.landed.get(commit.oid, {}).items():
                if text is None:
                    tree.pop(path, None)
                else:
                    tree[path] = ("100644", blob_id(text))
        now = self._tree(self.tip)
        differs = sorted(path for path in {*tree, *now} if tree.get(path) != now.get(path))
        if differs:
            self.object_to(self.tip, f"replaying what landed gives other files: {differs[:5]}")

    def _tree(self, commit: str) -> dict[str, tuple[str, str]]:
        listed = self.facts.git("ls-tree", "-r", "-z", commit).split("\0")[:-1]
        parts = [(entry.split("\t", 1)[0].split(), entry.split("\t", 1)[1]) for entry in listed]
        return {path: (mode, oid) for (mode, _, oid), path in parts}

    def _merges(self) -> None:
        cases = [(landing.seen, landing.tip) for landing in self.landings]
        trees = merged(self.facts, self.store, cases)
        for landing, tree in zip(self.landings, trees, strict=True):
            self.found.counts["merges clean" if tree else "merges with conflicts"] += 1
            if tree not in (None, landing.tree):
                self.object_to(
                    landing.what, f"git merges it to {tree}, it landed as {landing.tree}"
                )

    def _differs(self, seen: Intent, tip: str) -> bool:
        """Whether git merges an intent into something else than the rule does."""
        allowed = list(self.rule.results(seen, seen.base, tip))
        tree = merged(self.facts, self.store, [(seen, tip)])[0]
        if tree is None or not allowed:
            return False
        apart = Facts(self.store, self.facts.home)
        changes = apart.changed(tip, tree)
        apart.close()
        return not any(_is(result, changes) for result in allowed)


def _is(result: Result, changes: Changes) -> bool:
    """Whether changed paths hold exactly these texts, as plain files."""
    made = {
        path: None if text is None else (blob_id(text), "100644") for path, text in result.items()
    }
    return made == changes
