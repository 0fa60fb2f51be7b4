"""Fuzzing: no text whatever makes the parser raise, hang or half-apply.

    python -m bench.crash.fuzz [--checkout DIR] [--seconds 60 | --texts N] [--seed N] [--save DIR]

Responses in every form are written over the text files of a checkout (a few small files of its own
without one), damaged, and planned in this process; no repository takes part.  The seed is printed
and repeats the run, one text after the other.  The first finding is saved with its files, and ends
the run with exit code 1.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from types import FrameType

from bench.console import command_line
from patchq.core import formats
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.model.listing import Listing
from patchq.core.model.values import Entry, Envelope, Parsed, Plan
from patchq.core.plan import batch
from patchq.core.plan.targets import PlanRules
from patchq.core.resolve.levels import LEVELS

RULES = PlanRules(LEVELS, lambda path: None, 4 << 20)
HANG_SECONDS = 10
MOST_FILES, MOST_BYTES, MOST_RESPONSE = 300, 40_000, 200_000
SAMPLES = {
    "src/a.py": "import os\n\n\ndef one():\n    return 1\n\n\nclass Two:\n    x = '1'\n",
    "docs/b.md": "# Title\n\n```python\nx\n```\n\nText. More text.\n\n====\nEnd\n",
    "c.txt": "same\nsame\n\nsame\r\nlast",
}
MARKS = (
    "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "<<<<<<< RENAME", ">>>>>>> DELETE", "```",
    "````", "```diff", "```json", "~~~", "FIND:", "REPLACE WITH:", "FILE: c.txt", "END FILE",
    "### CHANGE 1:", "*** Begin Patch", "*** End Patch", "*** Update File: c.txt",
    "*** Add File: n", "*** End of File", "*** Move to: m", "@@", "@@ -1 +1 @@", "--- a/c.txt",
    "+++ b/c.txt", "diff --git a/c.txt b/c.txt", "rename from c.txt", "new file mode 100644",
    "\\ No newline at end of file", "<think>", "</think>", "---", "...", '{"edits": [',
    '{"path": "c.txt", "old_str": "same", "new_str": ""}', "]}", '"', "\\n", "\\", "\ufeff", "\r",
    "\x00", "\u2028", "\u201c", "12 | ", "<<EOF", "EOF", "/", "..", "c.txt",
)  # fmt: skip


class Hang(Exception):
    """A text took longer than `HANG_SECONDS`."""


class Finding(Exception):
    """A text broke a promise; the message says which."""


class Files:
    """A tree that holds the files of a dict."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = {path: text.encode() for path, text in files.items()}
        self.directories = {
            parent.as_posix() for path in files for parent in PurePosixPath(path).parents
        }

    def known(self, path: str) -> bool:
        return path in self.files

    def entry(self, path: str) -> Entry | None:
        if path in self.files:
            return Entry("file", "0" * 40)
        return Entry("tree", "0" * 40) if path in self.directories else None

    def read(self, path: str) -> bytes:
        return self.files[path]

    def names(self, directory: str) -> tuple[str, ...]:
        start = f"{directory}/" if directory else ""
        below = (path[len(start) :] for path in self.files if path.startswith(start))
        return tuple({path.split("/")[0] for path in below})

    def paths(self) -> Iterator[str]:
        return iter(self.files)

    def listing(self) -> Listing:
        return Listing.of(self.paths())

    def filtered(self, path: str) -> str | None:
        return None


# ---------------------------------------------------------------- texts


def files_of(checkout: Path | None) -> dict[str, str]:
    files = dict(SAMPLES)
    for path in sorted(checkout.rglob("*")) if checkout else ():
        if ".git" in path.parts or not path.is_file() or path.stat().st_size > MOST_BYTES:
            continue
        try:
            files[path.relative_to(checkout or path).as_posix()] = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if len(files) > MOST_FILES:
            break
    return files


def response(luck: random.Random, files: dict[str, str]) -> str:
    """Edits of some files, each in a form of its own, with prose between."""
    parts = []
    for _ in range(luck.choice((1, 1, 2, 4))):
        path = luck.choice(list(files))
        lines = files[path].split("\n")
        start = luck.randrange(len(lines))
        old = lines[start : start + luck.choice((1, 2, 5, 12))]
        new = [*old[:1], luck.choice(luck.choice(list(files.values())).split("\n")), *old[2:]]
        parts.append(luck.choice(("", "", "Here it is.\n")))
        parts.append(luck.choice(WRITERS)(path, start, old, new))
    return "\n".join(parts)


def joined(lines: Sequence[str], lead: str = "") -> str:
    return "".join(f"{lead}{line}\n" for line in lines)


Lines = list[str]


def search_replace(path: str, start: int, old: Lines, new: Lines) -> str:
    halves = f"<<<<<<< SEARCH\n{joined(old)}=======\n{joined(new)}>>>>>>> REPLACE\n"
    return f"{path}\n{halves}" if start % 2 else f"`{path}`\n```\n{halves}```\n"


def find_replace(path: str, start: int, old: Lines, new: Lines) -> str:
    return f"FILE: {path}\n\nFIND:\n```\n{joined(old)}```\n\nREPLACE WITH:\n```\n{joined(new)}```\n"


def diff(path: str, start: int, old: Lines, new: Lines) -> str:
    numbers = f"@@ -{start + 1},{len(old)} +{start + 1},{len(new)} @@"
    body = f"--- a/{path}\n+++ b/{path}\n{numbers}\n{joined(old, '-')}{joined(new, '+')}"
    return body if start % 2 else f"```diff\n{body}```\n"


def patch(path: str, start: int, old: Lines, new: Lines) -> str:
    body = f"@@\n{joined(old[:1], ' ')}{joined(old[1:], '-')}{joined(new[1:], '+')}"
    return f"*** Begin Patch\n*** Update File: {path}\n{body}*** End Patch\n"


def whole(path: str, start: int, old: Lines, new: Lines) -> str:
    head = (f"```text:{path}", f"{path}\n```", f"FILE: {path}\n```")[start % 3]
    return f"{head}\n{joined(old)}{joined(new)}```\n"


def in_json(path: str, start: int, old: Lines, new: Lines) -> str:
    before, after = joined(old), joined(new)
    call = {"file_path": path, "old_string": before, "new_string": after}
    context = {"before": before, "target": old[-1], "after": ""}
    anchor = {"type": "line_pattern", "selected": old[0]}
    value: object = (
        call,
        {"content": [{"type": "tool_use", "name": "Edit", "input": call}], "role": "assistant"},
        {"file": path, "edits": [{"type": "replace", "anchor": anchor, "content": after}]},
        {"file": path, "edits": [{"type": "modification", "target": before, "replacement": after}]},
        {"contextualEdits": [
            {"type": "modification", "file": path, "searchPattern": context, "replacement": after}
        ]},
        {"path": path, "insert_line": start, "new_str": after, "command": "insert"},
    )[start % 6]  # fmt: skip
    return json.dumps(value, indent=start % 2 or None) + "\n"


WRITERS = (search_replace, find_replace, diff, patch, whole, in_json)


def damaged(luck: random.Random, text: str, other: str) -> str:
    """The text after a few accidents."""
    for _ in range(luck.choice((0, 1, 1, 2, 3, 8))):
        at, size = luck.randrange(len(text) + 1), luck.choice((1, 1, 4, 40))
        lines = text.split("\n")
        i, k = luck.randrange(len(lines)), luck.randrange(len(lines))
        match luck.randrange(9):
            case 0:
                text = text[:at] + text[at + size :]
            case 1:
                text = text[:at] + luck.choice(MARKS) + text[at:]
            case 2:
                text = "\n".join([*lines[:i], luck.choice(MARKS), *lines[i:]])
            case 3:
                text = "\n".join([*lines[:i], *lines[i + 1 :]])
            case 4:
                text = "\n".join([*lines[:i], *lines[min(i, k) : k + 1], *lines[i:]])
            case 5:
                lines[i], lines[k] = lines[k], lines[i]
                text = "\n".join(lines)
            case 6:
                text = text[:at]
            case 7:
                text = text[:at] + other[luck.randrange(len(other) + 1) :]
            case 8:
                text = text.replace("\n", luck.choice(("\r\n", "\n\n", "\n ", "\\n")), size)
    return text[:MOST_RESPONSE]


# ---------------------------------------------------------------- promises


def judge(text: str, files: Files) -> str:
    """What became of the text; raises `Finding`, `Hang` or whatever the parser raises."""
    opened = open_response(text.encode("utf-8", "surrogatepass"))
    if not isinstance(opened, Envelope):
        return "refused"
    parsed = formats.parse(opened.text, files.known, opened.header, opened.first_line)
    _check_parsed(parsed, opened)
    if not parsed.edits:
        return "refused" if parsed.problems else "no edits"
    plan = batch.plan(parsed.edits, files, RULES)
    _check_plan(parsed, plan, files)
    return "refused" if plan.refused else "applied"


def _check_parsed(parsed: Parsed, opened: Envelope) -> None:
    last = opened.first_line + opened.text.count("\n")
    if parsed.edits and any(problem.severity == "error" for problem in parsed.problems):
        raise Finding("the parser gives edits beside an error")
    for at in (edit.at for edit in parsed.edits):
        if not opened.first_line <= at[0] <= at[1] <= last:
            raise Finding(f"an edit stands on the lines {at} of {last}")
    for problem in parsed.problems:
        if problem.line is not None and not 1 <= problem.line <= last:
            raise Finding(f"a problem stands on line {problem.line} of {last}")


def _check_plan(parsed: Parsed, plan: Plan, files: Files) -> None:
    states = {outcome.state for outcome in plan.edits}
    if [outcome.id for outcome in plan.edits] != [edit.id for edit in parsed.edits]:
        raise Finding("not every edit has one outcome")
    if plan.refused and (plan.changes or "applied" in states):
        raise Finding("a refused plan changes something")
    if not plan.refused and not states <= {"applied", "already_applied", "skipped", "cancelled"}:
        raise Finding(f"a plan that applies has edits that are {states}")
    for change in plan.changes:
        if change.before != files.files.get(change.renamed_from or change.path):
            raise Finding(f"the plan starts from other bytes than {change.path} has")


def _hangs(number: int, frame: FrameType | None) -> None:
    raise Hang(f"longer than {HANG_SECONDS} s")


def _save(directory: Path, text: str, files: Files, told: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    name = f"finding-{time.time_ns()}.json"
    named = {path: data.decode() for path, data in files.files.items() if path in text}
    (directory / name).write_text(json.dumps({"response": text, "files": named, "told": told}))
    return directory / name


def main() -> int:
    parser = command_line("bench.crash.fuzz", __doc__)
    parser.add_argument("--checkout", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--texts", type=int, metavar="N", help="end after N texts")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--save", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    texts = files_of(options.checkout)
    files, luck = Files(texts), random.Random(options.seed)
    signal.signal(signal.SIGALRM, _hangs)
    seen: Counter[str] = Counter()
    until, other = time.monotonic() + options.seconds, ""
    while seen.total() < options.texts if options.texts else time.monotonic() < until:
        text = damaged(luck, response(luck, texts), other)
        signal.alarm(HANG_SECONDS)
        try:
            seen[judge(text, files)] += 1
        except Exception:
            told = traceback.format_exc()
            print(told, f"saved to {_save(options.save, text, files, told)}", sep="")
            return 1
        finally:
            signal.alarm(0)
        other = text
    print(f"{seen.total()} texts:", ", ".join(f"{n} {what}" for what, n in seen.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
