"""Have an action die before each of its steps on the file system, in a child each time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from tests.helpers.ending import in_child

_STEPS = frozenset(
    {"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.chmod", "subprocess.Popen"}
)


def die_at(point: int, action: Callable[[], object]) -> bool:
    """Run the action in a child; True if it died before its `point`-th step."""
    steps = 0

    def watch(event: str, _: object) -> None:
        nonlocal steps
        steps += event in _STEPS
        if event in _STEPS and steps == point:
            os._exit(9)

    def watched() -> int:
        sys.addaudithook(watch)
        action()
        return 0

    code = in_child(watched)
    assert code in (0, 9)
    return code == 9


def deaths(action: Callable[[], object]) -> Iterator[int]:
    """Die at every step in turn, until the action gets through."""
    point = 1
    while die_at(point, action):
        yield point
        point += 1
    assert point > 3
