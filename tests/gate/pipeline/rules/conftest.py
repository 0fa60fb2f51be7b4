from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("rules") / "repo")
