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
    "error: file write error: Disk quota exceeded": "fault.disk",
    "fatal: Unable to create '/r/.git/index.lock': Read-only file system": "fault.disk",
    'error: open("a.txt"): Too many open files': "fault.disk",
    "fatal: cannot create async process: Cannot allocate memory": "fault.disk",
    "error: unable to read sha1 file of a.txt (0123)\nInput/output error": "fault.disk",
    "fatal: unable to read tree 0123": "repository.damaged",
    "error: object file .git/objects/01/23 is empty": "repository.damaged",
    "error: unable to write file a.txt": "fault.repository",  # there is room
    "fatal: not a git repository": "fault.repository",
}


@pytest.mark.parametrize(("said", "code"), SAID.items())
def test_what_git_says_is_named_as_it_is(tmp_path: Path, said: str, code: str) -> None:
    assert failure("cannot do it", said, tmp_path).code == code


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENOMEM])
def test_what_libgit2_says_is_named_as_it_is(number: int) -> None:
    error = OSError(f"failed to write object: {os.strerror(number)}")
    for found in (fault("cannot write objects", error), fault("cannot read", error, ObjectDamaged)):
        assert found.code == "fault.disk"
        assert os.strerror(number) in found.message
        assert "fsck" not in (found.hint or "")
