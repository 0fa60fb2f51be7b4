"""What every test of the room has: a client that does not wait long between its tries."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
