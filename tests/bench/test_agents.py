"""A share of the bench of agents that submit at once."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from bench.crash import agents


@pytest.mark.skipif(not find_spec("mcp"), reason="needs the extra `mcp`")
def test_two_agents_get_their_own_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{sys.executable} -m patchq"
    words = ["--agents", "2", "--submissions", "8", "--calm", "--command", command]
    assert agents.main(words) == 0, capsys.readouterr()
