"""Faults on standard error: in a line for people, as an object for programs."""

from __future__ import annotations

import sys

from patchq.core.text.quote import visible
from patchq.gate.errors import Fault, UsageError


def tell(fault: Fault, *, json: bool, id: str | None = None) -> None:
    """Print the fault and what to do, on one line where a command was called wrongly.

    The batch `id` that it is about is printed, where there are several.
    """
    if json:
        from patchq.gate.report.document import printed  # only programs need it

        error = {"code": fault.code, "message": fault.message, "hint": fault.hint}
        print(printed({"error": error | ({"id": id} if id else {})}), file=sys.stderr)
        return
    between = "; " if isinstance(fault, UsageError) and "\n" not in fault.message else "\n  "
    text = between.join(filter(None, (fault.message, fault.hint)))
    about = f"{id}: " if id else ""
    code = "" if fault.code == UsageError.code else f"{fault.code}: "
    print(visible(f"patchq: {about}{code}{text}", keep="\n"), file=sys.stderr)
