"""The corpus bench's other black box: the library, in this process, without a repository."""

from __future__ import annotations

import time

import patchq
from bench.corpus.cases import Case, OutcomeName, Result


def try_case(case: Case) -> Result:
    """Return what `patchq.apply` made of one case, held against what the case allows."""
    began = time.perf_counter()
    result = patchq.apply(case.response, case.before)
    seconds = time.perf_counter() - began
    outcome, why = _judged(case, result)
    problems = tuple(f"{p.code} {p.path or ''} {p.message}"[:160] for p in result.problems)
    return Result(case, outcome, why, problems, seconds)


def _judged(case: Case, result: patchq.Result) -> tuple[OutcomeName, str]:
    if not result.ok:
        left = [*result.files, *result.changes]
        return ("wrong", "refused, but it has changes") if left else ("refused", "")
    odd = [c.path for c in result.changes if c.executable or c.link or c.was_link]
    if odd:
        return "wrong", f"other modes: {', '.join(odd)}"
    wanted, made = ({**case.before, **files} for files in (case.after, result.files))
    differ = sorted(p for p in wanted.keys() | made.keys() if wanted.get(p) != made.get(p))
    if differ:
        return "wrong", f"other content: {', '.join(differ)}"
    return ("exact", "") if result.files else ("wrong", "nothing changes")
