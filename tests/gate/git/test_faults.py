"""What git, libgit2 and the system say when something fails, and the fault that it stands for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from patchq.gate.errors import ObjectDamaged, disk_fault
from patchq.gate.git.command import failure, fault

SAID = {
    "error: unable to create file a.txt: No space left on device": "fault.disk",
    "fatal: sha1 file '.git/index.lock' write error. Out of diskspace": "fault.disk",
    "error: unable to read sha1 file of a.txt (0123)\nInput/output error": "fault.disk",
    "fatal: unable to read tree 0123": "repository.damaged",
    "error: object file .git/objects/01/23 is empty": "repository.damaged",
    "error: unable to write file a.txt": "fault.repository",  # there is room
}


@pytest.mark.parametrize(("said", "code"), SAID.items())
def test_what_git_says_is_named_as_it_is(tmp_path: Path, said: str, code: str) -> None:
    assert failure("cannot do it", said, tmp_path).code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(f"failed to write object: {os.strerror(errno.EMFILE)}"), "fault.disk"),
        (OSError(f"failed to write object: {os.strerror(errno.ENOSPC)}"), "fault.disk"),
        (OSError(f"failed to write object: {os.strerror(errno.EDQUOT)}"), "fault.disk"),
        (OSError(errno.EIO, "Input/output error", b"/q"), "fault.disk"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x"), None),
    ],
    ids=["libgit2's", "no space", "no quota", "the system's", "of the response"],
)
def test_a_full_machine_is_no_fault_of_a_response(error: OSError, code: str | None) -> None:
    found = disk_fault(error)
    assert (found and found.code) == code
    assert not found or (found.message and found.hint)
    if error.errno is None:
        assert fault("cannot read", error, ObjectDamaged).code == code
