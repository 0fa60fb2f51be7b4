"""A full machine is no fault of a response."""

from __future__ import annotations

import errno

import pytest

from patchq.gate.errors import disk_fault


@pytest.mark.parametrize(
    ("error", "of_the_machine"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/q"), True),
        (OSError(errno.EIO, "Input/output error", b"/q"), True),
        (OSError("could not open '/q': Too many open files"), True),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x"), False),
    ],
)
def test_what_no_response_can_cause_is_no_verdict_on_one(
    error: OSError, of_the_machine: bool
) -> None:
    fault = disk_fault(error)
    assert (fault is not None) == of_the_machine
    if fault is not None:
        assert fault.message
        assert fault.hint
