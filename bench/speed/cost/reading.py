"""The largest response, and the one with the most to tell: seconds of the processor, not ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from bench.speed.matching import PATH, source, spread
from tests.helpers.gitrepo import write_config

READ = """
import json, sys, time
from pathlib import Path
from types import SimpleNamespace
from patchq.core import formats
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.model.values import Entry
from patchq.core.plan import batch
from patchq.core.plan.targets import PlanRules
from patchq.core.resolve.levels import LEVELS

path, response, file = sys.argv[1], *(Path(name).read_bytes() for name in sys.argv[2:4])
tree = SimpleNamespace(
    entry=lambda name: Entry("file", "0" * 40) if name == path else None,
    read=lambda name: file,
    names=lambda directory: (),
    paths=lambda: iter((path,)),
    filtered=lambda name: None,
)
rules, times = PlanRules(LEVELS, lambda name: None, 64 << 20), []
for _ in range(7):
    began = time.process_time()
    opened = open_response(response)
    read = formats.parse(opened.text, {path}.__contains__, opened.header, opened.first_line)
    plan = batch.plan(read.edits, tree, rules)
    times.append(time.process_time() - began)
    assert not plan.refused
print(1000 * min(times))
"""
MISSED = 8000


def reading(ground: Ground) -> Iterator[Goal]:
    """A response of 2,000 edits read and placed in a file of 50,000 lines; and dry runs of ones
    whose edits have no certain place, less what a dry run of one such edit costs."""
    lines, edits = (5000, 200) if ground.quick else (50_000, 2000)
    response, file = ground.room / "large.md", ground.room / "large.py"
    response.write_text(spread(lines, edits))
    file.write_text(source(lines))
    python = str(Path(ground.command[0]).with_name("python"))
    words = (python, "-c", READ, PATH, str(response), str(file))
    large = [float(ground.said(words, ground.room)) for _ in range(ground.rounds)]
    repo = ground.repository()
    ground.write(repo, PATH, _ambiguous())
    write_config(repo, f"version: 1\nlimits: {{edits: {2 * MISSED}}}\n")
    missed: dict[str, list[float]] = {}
    for _ in range(ground.rounds):
        for form, write in FORMS.items():
            values = []
            for count in (1, MISSED // 10 if ground.quick else MISSED):
                asked = repo / "response.md"
                asked.write_text(write(count))
                check = [*ground.command, "check", str(asked)]
                values.append(ground.spent(check, repo, ends=(1,)))
            missed.setdefault(form, []).append(values[1] - values[0])
    yield Goal(f"{edits:,} edits in {lines:,} lines, ms of the processor", large, 60)
    for form, values in missed.items():
        yield Goal(f"{MISSED:,} {form}, s of the processor", values, 2)


def _ambiguous() -> str:
    return "".join(f"def f_{k}():\n    a = 1\n    return g(a, {k % 50})\n\n" for k in range(5000))


def _blocks(count: int, quote: str) -> str:
    return "".join(
        f"{PATH}\n<<<<<<< SEARCH\n{quote.format(k, k % 50)}\n=======\n    new_{k}\n"
        ">>>>>>> REPLACE\n\n"
        for k in range(count)
    )


def _hunks(count: int) -> str:
    hunks = "".join(
        f"@@ -1,2 +1,2 @@\n-    a = 1\n+    a = {k + 2}\n     return g(a, {k % 50})\n"
        for k in range(count)
    )
    return f"```diff\n--- a/{PATH}\n+++ b/{PATH}\n{hunks}```\n"


FORMS: dict[str, Callable[[int], str]] = {
    "hunks of several places": _hunks,
    "blocks of several places": lambda n: _blocks(n, "    a = 1\n    return g(a, {1})"),
    "blocks of no place": lambda n: _blocks(n, "    zorp_{0} = 1"),
}
"""What writes so many edits in a form."""
