"""Makes `docs/report-codes.md` from the table: `python -m tests.helpers.report_codes`."""

from __future__ import annotations

from patchq.gate.report.codes import CODES
from tests.helpers.pages import ROOT

PAGE = ROOT / "docs/report-codes.md"


def made() -> str:
    lines = [
        "# Report codes",
        "",
        "Every problem in a report carries one of these codes. The list is closed: a new code is",
        "announced in the changelog. An *alias* is the name that older tools use for a code.",
    ]
    for code in CODES.values():
        lines += ["", f"## `{code.name}`", "", f"**Cause:** {code.cause}", ""]
        lines += [f"**Cure:** {code.cure}"]
        lines += ["", f"**Alias:** `{code.alias}`"] if code.alias else []
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
