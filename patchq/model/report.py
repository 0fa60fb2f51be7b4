"""The report on one response: the parsed content of `<id>.report.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Report = Mapping[str, Any]
"""The parsed content of `<id>.report.json` (schema `patchq.report/1`)."""
