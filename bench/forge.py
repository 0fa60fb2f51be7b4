"""What rounds with a forge cost, and whether faults in between change their end.

    python -m bench.forge [--seeds 200] [--only faults|landing|rest]

Everything runs against the fake of the tests.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from tests.forge import story
from tests.forge.conftest import Scene
from tests.helpers.gitrepo import GITCONFIG

MOST_REQUESTS, MOST_SECONDS = 2, 0.05


def faults(place: Path, seeds: int) -> Iterator[str]:
    """Yield the seeds whose story ends otherwise than without faults."""
    plain = Scene(place / "plain", story.CONFIG)
    story.tell(plain, lambda: story.quiet(plain))
    wanted, count = story.end(plain), 0
    for seed in range(seeds):
        scene = Scene(place / f"seed-{seed}", story.CONFIG, judged=False)
        try:
            count += story.with_faults(scene, seed)
        except Exception as error:
            yield f"seed {seed}: {error!r}"
            continue
        for name, value in story.end(scene).items():
            if value != wanted.get(name):
                yield f"seed {seed}: {name} is {value}, not {wanted.get(name)}"
        scene.gate.close()
    print(f"faults: {seeds} seeds, {count} faults")


def landing(place: Path) -> Iterator[str]:
    """Yield the copies that move while another proposal of forty lands."""
    scene = Scene(place / "landing", "  on_approve: accept\n", judged=False, lines=500)
    scene.propose_all({f"p{n}": (f"a{12 * n} = {12 * n}", f"a{12 * n} = 0") for n in range(1, 41)})
    scene.round()
    for number in range(1, 9):
        scene.fake.review(number, "ada", "APPROVED")
        scene.round()
    heads = [scene.fake.pulls[number].values["head"]["ref"] for number in range(1, 41)]
    moved = [scene.fake.moved[head] for head in heads]
    states = [scene.fake.state(number) for number in range(1, 9)]
    print(
        f"landing: 8 of 40, {states.count('merged')} merged, pushes to the others: "
        f"{sum(moved[8:]) - 32}"
    )
    if sum(moved[8:]) != 32 or states != ["merged"] * 8:
        yield f"landing: {states}, {moved}"


def rest(place: Path) -> Iterator[str]:
    """Yield what a round costs too much of while nothing happens beside 200 open requests."""
    scene = Scene(place / "rest", judged=False, lines=1000)
    scene.propose_all(
        {f"p{n}": (f"a{5 * n + 1} = {5 * n + 1}", f"a{5 * n + 1} = 0") for n in range(200)}
    )
    scene.round()
    scene.round()
    asked, began = len(scene.fake.asked), process_time()
    done = scene.round()
    seconds, count = process_time() - began, len(scene.fake.asked) - asked
    print(f"rest: 200 open, {count} requests, {seconds * 1000:.0f} ms of processor a round")
    if count > MOST_REQUESTS or seconds > MOST_SECONDS or done:
        yield f"rest: {count} requests, {seconds:.3f} s, {done[:3]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.forge", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", choices=("faults", "landing", "rest"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchq-bench-") as name:
        place = Path(name)
        (place / ".gitconfig").write_text(GITCONFIG)
        os.environ |= {"HOME": name, "GIT_CONFIG_NOSYSTEM": "1"}
        wrong: list[str] = []
        if args.only in (None, "rest"):
            wrong += rest(place)
        if args.only in (None, "landing"):
            wrong += landing(place)
        if args.only in (None, "faults"):
            wrong += faults(place, args.seeds)
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
