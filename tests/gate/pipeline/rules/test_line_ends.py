"""New lines take the line end that the file has most of."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

PATH = "a.txt"
_CALL = '{"path": "a.txt", "old_str": "a\\nb", "new_str": "a\\nx\\ny"}'
_BLOCK = "a.txt\n<<<<<<< SEARCH\nb\n=======\nx\ny\n>>>>>>> REPLACE\n"
_PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n a\n-b\n+x\n+y\n*** End Patch\n"
FORMS = {"a block": _BLOCK, "a call": _CALL, "a patch": _PATCH}
ENDS = {"CR": "\r", "CRLF": "\r\n", "LF": "\n"}


@pytest.mark.parametrize("response", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("last", ["c", "c\n"], ids=["no final end", "a final end"])
def test_new_lines_end_as_the_others(bench: Bench, response: str, end: str, last: str) -> None:
    before = f"a\nb\n{last}".replace("\n", end)
    after = f"a\nx\ny\n{last}".replace("\n", end)
    check(bench, Row("", {PATH: before}, response, {PATH: after}))
