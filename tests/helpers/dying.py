"""Have an action die before each of its steps on the file system, in a child each time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from tests.helpers.ending import code_of

_STEPS = frozenset(
    {"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.chmod", "subprocess.Popen"}
)


def die_at(point: int, action: Callable[[], object]) -> bool:
    """Run the action in a child; True if it died before its `point`-th step."""
    child = os.fork()
    if child == 0:
        steps = 0

        def watch(event: str, _: object) -> None:
            nonlocal steps
            steps += event in _STEPS
            if event in _STEPS and steps == point:
                os._exit(9)

        try:
            sys.addaudithook(watch)
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = code_of(child)
    assert status in (0, 9)
    return status == 9


def deaths(action: Callable[[], object]) -> Iterator[int]:
    """Die at every step in turn, until the action gets through."""
    point = 1
    while die_at(point, action):
        yield point
        point += 1
    assert point > 3
