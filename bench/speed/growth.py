"""Placing: how does the time grow with a batch?

    python -m bench.speed.growth [--only TEXT] [--size 1000] [--rounds 3] [--most 4.5] [--tree DIR]

Each row is a batch of `--size` edits and one of twice as many, in a file that grows along; the
figures are milliseconds of the processor, the best of all rounds, with the collector of cycles off,
since its time depends on what else lives.  A time that is proportional to the size doubles; a
quadratic one takes four times as long: for an edit that builds on an earlier one the whole file,
which grows along, is read anew.  With `--tree` another checkout is asked in turn for the
larger batch, and the ratio to it is shown; some batches that it may refuse are no fair comparison.
Exit 1 when a row grows by more than `--most`.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.console import command_line
from bench.git import environment
from bench.speed.matching import PATH, RULES, OneFile
from patchq.core.model.ops import Create, InsertAt, Op, PatchHunk, Replace, ReplaceText
from patchq.core.model.values import Edit
from patchq.core.plan import batch

Batch = tuple[Sequence[Op], str]
"""Operations on a file, and what it holds."""
_NEW = "src/new.py"
_FIELDS = set(Edit.__struct_fields__)


def main() -> int:
    parser = command_line("bench.speed.growth", __doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose name holds this")
    parser.add_argument("--size", type=int, default=1000, metavar="EDITS")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--most", type=float, default=4.5, metavar="RATIO")
    parser.add_argument("--tree", type=Path, metavar="DIR", help="another checkout of patchq")
    args = parser.parse_args()
    sizes = args.size, 2 * args.size
    own = Path(__file__).resolve().parents[2]
    here = _process(own)
    there = _process(args.tree) if args.tree else None
    print(f"{'':<42}{sizes[0]:>8,}{sizes[1]:>9,}{'growth':>8}{'other':>9}{'ratio':>7}")
    steep = []
    for name in (name for name in SHAPES if args.only in name):
        small, large, other = [], [], []
        for _ in range(args.rounds):
            small.append(_asked(here, name, sizes[0]))
            large.append(_asked(here, name, sizes[1]))
            if there:
                other.append(_asked(there, name, sizes[1]))
        growth = min(large)[0] / min(small)[0]
        line = f"{name:<42}{min(small)[0]:>8.1f}{min(large)[0]:>9.1f}{growth:>8.2f}"
        if other:
            line += f"{min(other)[0]:>9.1f}{min(large)[0] / min(other)[0]:>7.2f}"
        said = dict.fromkeys([large[0][1], *(one[1] for one in other[:1])])
        verdict = "fits" if growth <= args.most else "STEEPER"
        print(f"{line:<83}  {verdict}, {' | '.join(said)}", flush=True)
        if growth > args.most:
            steep.append(name)
    for process in filter(None, (here, there)):
        process.terminate()
    print(f"\nsteeper than {args.most:g}: {', '.join(steep) or 'none'}")
    return 1 if steep else 0


def _process(tree: Path) -> subprocess.Popen[str]:
    """This file, with the patchq of a checkout."""
    return subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        cwd=tree,
        env={**environment(tree), "PYTHONPATH": str(tree.resolve())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(process: subprocess.Popen[str], name: str, size: int) -> tuple[float, str]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([name, size]) + "\n")
    process.stdin.flush()
    taken, said = json.loads(process.stdout.readline())
    return taken, said


def serve() -> None:
    """Answer names of shapes and sizes with the time that placing takes, and what comes of it."""
    gc.disable()
    for line in sys.stdin:
        name, size = json.loads(line)
        edits, text = made(name, size)
        began = time.process_time()
        plan = batch.plan(edits, OneFile(text), RULES)
        taken = 1000 * (time.process_time() - began)
        codes = ", ".join(sorted({problem.code for problem in plan.problems}))
        print(json.dumps([taken, codes if plan.refused else "applied"]), flush=True)
        del plan
        gc.collect()


def made(name: str, size: int) -> tuple[list[Edit], str]:
    """The edits of a shape, and the file that they are for."""
    called = name.endswith(", called")
    ops, text = SHAPES[name](size)
    path = _NEW if isinstance(ops[0], Create) else PATH
    more: dict[str, Any] = {"called": called, "section": int(isinstance(ops[0], PatchHunk))}
    known = {key: value for key, value in more.items() if key in _FIELDS and value}
    return [Edit(str(i), "bench", (i, i), path, op, **known) for i, op in enumerate(ops, 1)], text


# ---------------------------------------------------------------- the shapes


def line(i: int) -> str:
    return f"    value_{i} = compute({i}, other[{i % 97}])\n"


def source(lines: int) -> str:
    return "".join(map(line, range(lines)))


def function(i: int) -> str:
    return f"def f_{i}():\n    return {i}\n"


def functions(count: int) -> str:
    return "".join(map(function, range(count)))


def blocks(size: int) -> Batch:
    pairs = [(line(5 * i), line(5 * i + 1)) for i in range(size)]
    return [Replace(a + b, f"{a}    changed = True\n") for a, b in pairs], source(5 * size)


def hunks(size: int) -> Batch:
    ops, text = blocks(size)
    pairs = [(op.old, op.new) for op in ops if isinstance(op, Replace)]
    return [PatchHunk(old, new, 5 * i + 1) for i, (old, new) in enumerate(pairs)], text


def characters(size: int) -> Batch:
    text = source(2 * size)
    return [ReplaceText(f"value_{2 * i} = ", f"v_{i} = ") for i in range(size)], text


def deletions(size: int) -> Batch:
    return [Replace(line(2 * i), "") for i in range(size)], source(2 * size)


def insertions(size: int) -> Batch:
    return [InsertAt(4 * i, f"new {i}\n") for i in range(size)], source(4 * size + 4)


def later(size: int) -> list[Op]:
    """Edits of what functions return."""
    return [Replace(f"    return {i}\n", f"    return {i} + 1\n") for i in range(size)]


def moved(size: int) -> Batch:
    """Functions move to the file's end, and are edited there."""
    every = functions(size)
    ops = [Replace(f"# top\n{every}", "# top\n"), Replace("# end\n", f"# end\n{every}")]
    return [*ops, *later(size)], f"# top\n{every}# middle\n# end\n"


def moved_deeper(size: int) -> Batch:
    """The same into a class, so that the edits are indented otherwise than what they quote."""
    every = functions(size)
    inside = "".join(f"    {one}\n" for one in every.splitlines())
    ops = [Replace(f"# top\n{every}", "# top\n"), Replace("class A:\n", f"class A:\n{inside}")]
    return [*ops, *later(size)], f"# top\n{every}# middle\nclass A:\n    pass\n"


def created(size: int) -> Batch:
    return [Create(functions(size)), *later(size)], ""


def chains(size: int) -> Batch:
    """Each second edit changes what the one before it wrote."""
    ops: list[Op] = []
    for i in range(size // 2):
        ops += [Replace(line(i), f"new_{i}\n"), Replace(f"new_{i}\n", f"newer_{i}\n")]
    return ops, source(size)


def renames(size: int) -> Batch:
    """One name after the other, in all places, and an edit behind each."""
    ops: list[Op] = []
    for i in range(size // 2):
        ops += [ReplaceText(f"name_{i} ", f"name_{i}_a ", None)]
        ops += [ReplaceText(f"name_{i}_a = 1", f"name_{i}_a = 2")]
    return ops, "".join(f"name_{i} = 1\nuse(name_{i} )\n" for i in range(size // 2))


def equal(size: int) -> Batch:
    """Chunks that could stand anywhere, but for their order."""
    unit = "def f():\n    begin()\n    work()\n    finish()\n\n"
    old = "    begin()\n    work()\n"
    return [PatchHunk(old, f"    begin()\n    work({i})\n") for i in range(size)], unit * size


def one_line(size: int) -> Batch:
    ops = [ReplaceText(f"value_{2 * i} = ", f"v_{i} = ") for i in range(size)]
    return ops, "".join(f"value_{i} = {i};" for i in range(2 * size)) + "\n"


def dots(size: int) -> Batch:
    """New lines that may stand for others, which the file has as well."""
    ops = [Replace(line(2 * i), f"# ... rest {i}\n") for i in range(size)]
    return ops, source(2 * size) + "".join(f"# ... rest {i}\n" for i in range(size))


def turned(shape: Callable[[int], Batch]) -> Callable[[int], Batch]:
    def backwards(size: int) -> Batch:
        ops, text = shape(size)
        return ops[::-1], text

    return backwards


def returns(shape: Callable[[int], Batch]) -> Callable[[int], Batch]:
    def with_returns(size: int) -> Batch:
        ops, text = shape(size)
        return ops, text.replace("\n", "\r\n")

    return with_returns


def letters(shape: Callable[[int], Batch]) -> Callable[[int], Batch]:
    """The same, each edit as a call that quotes characters."""

    def called(size: int) -> Batch:
        ops, text = shape(size)
        return [ReplaceText(op.old, op.new) if isinstance(op, Replace) else op for op in ops], text

    return called


SHAPES: dict[str, Callable[[int], Batch]] = {
    "blocks": blocks,
    "blocks, from the last to the first": turned(blocks),
    "blocks for lines that end with CRLF": returns(blocks),
    "hunks": hunks,
    "hunks, from the last to the first": turned(hunks),
    "chunks that stand anywhere": equal,
    "characters": characters,
    "characters, called": characters,
    "deletions": deletions,
    "deletions, called": letters(deletions),
    "insertions by number": insertions,
    "insertions by number, called": insertions,
    "insertions, from the last, called": turned(insertions),
    "moved lines, edited": moved,
    "moved lines, edited, called": letters(moved),
    "moved lines with CRLF, edited": returns(moved),
    "moved deeper, edited": moved_deeper,
    "created, then edited": created,
    "created, then edited, called": letters(created),
    "edits of edits": chains,
    "edits of edits, called": letters(chains),
    "names changed in all places, called": renames,
    "one long line": one_line,
    "one long line, called": one_line,
    "lines that may stand for others": dots,
}


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        sys.exit(main())
