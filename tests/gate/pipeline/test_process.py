"""What holds of every decision, whatever the response."""

from __future__ import annotations

import gc
from contextlib import suppress

from patchq.gate.pipeline.process import collected_later


def test_garbage_is_looked_for_after_a_decision_however_that_ends() -> None:
    seen = list[bool]()
    with suppress(KeyboardInterrupt), collected_later():
        with collected_later():
            seen.append(gc.isenabled())
        seen.append(gc.isenabled())
        raise KeyboardInterrupt
    assert [*seen, gc.isenabled()] == [False, False, True]
