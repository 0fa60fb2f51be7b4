"""What git and libgit2 say when something fails, and the fault that it stands for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from patchq.gate.errors import ObjectDamaged
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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
def test_what_libgit2_says_is_named_as_it_is(number: int) -> None:
    error = OSError(f"failed to write object: {os.strerror(number)}")
    assert fault("cannot read", error, ObjectDamaged).code == "fault.disk"
