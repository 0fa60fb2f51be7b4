"""Reading and placing in pairs: this checkout against another one, text by text, in turn.

    python -m bench.speed.pairs --tree DIR [--only TEXT] [--rounds 7] [--most 1.1]

Each checkout has a process of its own, with its own patchq, and both are asked for the same text
one behind the other, so that what else the machine does meets both.  A figure is the best of all
rounds, in milliseconds of the processor; `parse` opens and reads the response, `apply` finds its
edits' places.  Exit 1 when the sum of both is more than `--most` times the other's for any text.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.console import command_line
from bench.corpus.rewrites.forms import AS_IT_IS, FORMS
from bench.corpus.rewrites.tasks import Change
from bench.git import environment
from bench.speed.matching import PATH, source, spread

Ask = Callable[[str, str], tuple[str, float, float]]
"""Asks a process about a response and its file: what came of it, and both times."""
MANY = 1000
WORKER = """
import json, sys, time
from bench.speed.matching import PATH, RULES, OneFile
from patchq.core import formats
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.plan import batch

def best(work):
    times, spent = [], 0.0
    while len(times) < 3 or (spent < 0.03 and len(times) < 50):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
        spent += times[-1]
    return 1000 * min(times)

def parse(data):
    opened = open_response(data)
    if isinstance(opened, tuple):
        return opened, ()
    read = formats.parse(opened.text, {PATH}.__contains__, opened.header, opened.first_line)
    return read.problems, read.edits

for line in sys.stdin:
    response, text = json.loads(line)
    data, tree = response.encode(), OneFile(text)
    problems, edits = parse(data)
    place = lambda: batch.plan(edits, tree, RULES)
    said = next((p.code for p in problems if p.severity == "error"), f"{len(edits)} edits")
    placed = edits and place()
    said += " refused" if placed and placed.refused else ""
    print(json.dumps([said, best(lambda: parse(data)), best(place) if edits else 0.0]), flush=True)
"""


def main() -> int:
    parser = command_line("bench.speed.pairs", __doc__)
    parser.add_argument("--tree", type=Path, metavar="DIR", required=True)
    parser.add_argument("--only", metavar="TEXT", default="", help="texts whose name holds this")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    parser.add_argument("--most", type=float, default=1.1, metavar="RATIO")
    args = parser.parse_args()
    own = Path(__file__).resolve().parents[2]
    print(f"{'':<40}{'parse ms':>20}{'ratio':>7}{'apply ms':>20}{'ratio':>7}")
    slower = []
    with _process(args.tree) as there, _process(own) as here:
        for name, response, text in texts():
            if args.only in name:
                rounds = [
                    (_asked(there, response, text), _asked(here, response, text))
                    for _ in range(args.rounds)
                ]
                if _line(name, rounds) > args.most:
                    slower.append(name)
        for process in (there, here):
            process.terminate()
    print(f"\nslower than {args.most:g}: {', '.join(slower) or 'none'}")
    return 1 if slower else 0


def _process(tree: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER],
        cwd=tree,
        env={**environment(tree), "PYTHONPATH": str(tree.resolve())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


Answer = tuple[str, float, float]
"""What came of a response, and the times of reading and placing it."""


def _asked(process: subprocess.Popen[str], response: str, text: str) -> Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([response, text]) + "\n")
    process.stdin.flush()
    said, parse, apply = json.loads(process.stdout.readline())
    return said, parse, apply


def _line(name: str, rounds: Sequence[tuple[Answer, Answer]]) -> float:
    """Print what the rounds say of a text; the ratio of both sums."""
    cells, sums = "", [0.0, 0.0]
    for part in (1, 2):
        there, here = (min(float(pair[side][part]) for pair in rounds) for side in (0, 1))
        ratio = here / there if there else 1.0
        sums = [sums[0] + there, sums[1] + here]
        cells += f"{there:>10.2f}{here:>10.2f}{ratio:>7.2f}"
    said = [answer[0] for answer in rounds[0]]
    print(f"{name:<40}{cells}  {said[0] if said[0] == said[1] else ' | '.join(said)}", flush=True)
    return sums[1] / sums[0] if sums[0] else 1.0


# ---------------------------------------------------------------- the texts


def texts() -> Iterator[tuple[str, str, str]]:
    """Names, responses, and the file that each is for."""
    file = source(20_000)
    yield "one block", spread(20_000, 1), file
    yield "100 blocks", spread(20_000, 100), file
    yield "2,000 blocks", spread(20_000, 2000), file
    for form in FORMS:
        if form.family == "files":
            changes = [Change(PATH, None, file)]
        else:
            changes = [_change(20 * i + 2) for i in range(MANY)]
        yield f"{form.name}, {len(changes):,}", form.write(changes, AS_IT_IS), file
        if form.family != "files":
            yield f"{form.name}, 1", form.write(changes[:1], AS_IT_IS), file
    for name, text in BESIDE.items():
        yield name, f"{text}\n{spread(20_000, 1)}", file
        yield f"{name}, and behind", f"{spread(20_000, 1)}\n{text}", file
    deep = "".join(spread(20_000, 1, indent=" " * k).replace(PATH, " " * k + PATH)
                   for k in range(200))  # fmt: skip
    yield "200 quotes, each indented deeper", deep, file


def _change(at: int) -> Change:
    old = [f"    value_{k} = compute({k}, other[{k % 97}])\n" for k in range(at, at + 3)]
    return Change(PATH, "".join(old), f"{old[0]}    changed_{at} = True\n{old[2]}", at)


_SENTENCE = "This sentence of line {i} says why the `change` is right, as models (often) do:\n"


def _lines(line: str, count: int) -> str:
    return "".join(line.replace("{i}", str(i)) for i in range(count))


BESIDE = {
    "4,000 lines of prose": _lines(_SENTENCE, 4000),
    "3,000 lines of HTML": _lines('<li class="a{i}"><b>item {i}</b> and <i>more</i></li>\n', 3000),
    "3,000 lines with brackets": _lines("- [ ] item [{i}] of a list, see [1](x.md)\n", 3000),
    "700 shell fences": _lines("Run step {i}:\n\n```bash\npython -m step{i} --all\n```\n\n", 700),
    "700 prompts": _lines("    $ python -m step{i} --all\n", 700),
    "700 commands in backticks": _lines("Then `cat notes/{i}.txt` shows it.\n", 700),
    "700 fences of Python": _lines("As in {i}:\n\n```python\nx = {i}\n```\n\n", 700),
    "700 fences of HTML": _lines("As in {i}:\n\n```html\n<p>x{i}</p>\n```\n\n", 700),
    "3,000 items": _lines("{i}. item of a list, *number* {i}\n", 3000),
    "3,000 quoted lines": _lines("> quoted line {i} of a mail, with `words`\n", 3000),
    "3,000 bare rules": _lines("---\n", 3000),
    "3,000 rows of a table": _lines("| {i} | a cell | `b{i}` |\n", 3000),
    "3,000 lines with entities": _lines("a &amp; b{i} &lt; c\n", 3000),
    "3,000 lines with escapes": _lines('print("a{i}\\\\n")\n', 3000),
    "3,000 lines of YAML": _lines("key{i}: value {i}\n", 3000),
}  # fmt: skip
"""What may stand beside an edit, and means nothing."""


if __name__ == "__main__":
    sys.exit(main())
