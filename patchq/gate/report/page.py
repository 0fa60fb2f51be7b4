"""The report as a page: for a person who reviews, and for a model that has to send again.

The page is made from the JSON report alone, so it can be made anew for every later state.  What a
model needs after a refusal is one text, `prompt`, which the JSON carries as `retry.prompt`; only
that text shows excerpts, and only it knows that nothing was applied.  Quotations go through
`quote`, patchq's sentences never hold them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from patchq.core.model.frozen import frozen
from patchq.core.model.names import REQUEST
from patchq.core.model.report import CandidateEntry, CollisionEntry, EditEntry, ProblemEntry, Report
from patchq.core.text.quote import excerpt, fence, inline, sentence, visible
from patchq.gate.report import comments
from patchq.gate.report.codes import CODES


@frozen
class Evidence:
    """What a prompt shows beside a problem: the file's `lines`, the first of which has the number
    `first`, and the `quote` that stands nowhere in it."""

    first: int = 1
    lines: tuple[str, ...] = ()
    quote: str = ""


NOTHING = Evidence()

MAX_EXCERPT_LINES = 200
MAX_QUOTE_LINES = 60
MAX_BYTES = 256 * 1024
MAX_PROMPT_BYTES = 32 * 1024
_MOST_CANDIDATES = 20
_MOST_ROWS = 100
_LEAST_DIFF = 1024
# The lines that a problem shows would be those of an outdated or an unknown base.
_BASE_IN_DOUBT = frozenset({"conflict.base", "frontmatter.base", "base.unknown"})


def to_markdown(report: Report, *, foreseen: bool = False) -> str:
    """The page for a report of any state, at most 256 KiB of UTF-8; for one that is only
    `foreseen`, by a dry run, it promises nothing."""
    title = f"# {inline(report['id'])}: {'would be ' if foreseen else ''}{report['state']}"
    if report["state"] == "rejected":
        return _joined([title, *_refused(report)], "")
    sections = [_section(problem, _named(report, problem)) for problem in report["problems"]]
    decision = [_FORESEEN] if foreseen else [_verdict(report), *_reason(report), *_review(report)]
    decision += comments.section(report)
    details = [*sections, *_hooks(report), *_corrections(report), *_table(report["edits"])]
    return _joined([title, *decision, *details], report["diff"])


def _refused(report: Report) -> list[str]:
    """What to send again; where no model answered, that, and the prompt to send by hand."""
    text = report["retry"]["prompt"] or _NOTHING_APPLIED
    errors = [problem for problem in report["problems"] if problem["severity"] == "error"]
    if not all(problem["code"].startswith("llm.") for problem in errors):
        return [text]
    sections = [_section(problem, _named(report, problem)) for problem in errors]
    return [*sections, "## The prompt, to send by hand", fence(text)]


_FORESEEN = (
    "This is what would become of the response now. Nothing was changed and no hook was asked; "
    "what lands or waits meanwhile may change it."
)
_NOTHING_APPLIED = "The response was refused. Nothing of it was applied."
_WOULD_BE_REFUSED = "The response would be refused now. Nothing was changed and no hook was asked."


def prompt(
    report: Report,
    evidence: Sequence[Evidence] = (),
    instructions: str = "",
    *,
    foreseen: bool = False,
) -> str:
    """What tells a model how to send a refused response again.

    `evidence` is what to show beside each of `problems`; together at most 200 of the files' lines
    are shown.  `instructions` tell how edits are written in the form that the response had.  The
    errors come first; what to send is never left out.  Of one that is only `foreseen` no batch is
    known that could be tried again.
    """
    ending = [*_hooks(report), *_what_to_send(report, instructions, foreseen)]
    sections = _sections(report, evidence, MAX_PROMPT_BYTES - _bytes(ending))
    first = _WOULD_BE_REFUSED if foreseen else _NOTHING_APPLIED
    return "\n\n".join([first, *sections, *ending]) + "\n"


def _sections(report: Report, evidence: Sequence[Evidence], room: int) -> Iterator[str]:
    """A section for each problem, as many as `room` bytes hold, with as many lines."""
    pairs = list(zip(report["problems"], chain(evidence, repeat(NOTHING)), strict=False))
    pairs.sort(key=lambda pair: pair[0]["severity"] == "warning")
    lines_left = MAX_EXCERPT_LINES
    for number, (problem, shown) in enumerate(pairs):
        kept = shown.lines[:lines_left]
        quote = shown.quote
        name = _named(report, problem)
        while _bytes([section := _section(problem, name, shown, kept, quote)]) > room:
            if not (kept or quote):
                yield f"… {len(pairs) - number} more problems are left out here"
                return
            quote = quote if kept else ""
            kept = kept[: len(kept) // 2]
        lines_left -= len(kept)
        room -= _bytes([section])
        yield section


# ---------------------------------------------------------------- the verdict


def _reason(report: Report) -> list[str]:
    """Why it was decided so: a person's words, which nobody takes for patchq's."""
    return ["Why:", fence(report["reason"])] if report["reason"] else []


def _verdict(report: Report) -> str:
    target = inline(report["target"] or "the target")
    commit = f", as commit {inline(report['commit'][:12])}" if report["commit"] else ""
    other, on = report["duplicate_of"], report["stands_on"]
    below = f" It stands on batch {inline(on['batch'])}, which waits, too." if on else ""
    return {
        "applied": f"The edits are on {target}{commit}.",
        "proposed": f"The edits wait for review{commit}, for {target}.{below}",
        "duplicate": f"The same response was handled as {inline(other)}; nothing was changed."
        if other
        else "The files already hold what the edits say; nothing was changed.",
        "held": "The batch waits; nothing was changed so far.",
        "accepted": f"The batch was accepted; the edits are on {target}{commit}.",
        "discarded": "The batch was discarded; its edits are not on the target.",
        "superseded": f"A later response{f', {inline(other)},' if other else ''} took the place of "
        "this batch; its edits are not on the target.",
        "reverted": "The edits were on the target and have been reverted"
        + (f" by {inline(other)}." if other else "."),
    }[report["state"]]


def _review(report: Report) -> list[str]:
    """How to look at a branch that waits, and to decide."""
    if report["state"] != "proposed" or not report["branch"]:
        return []
    id, branch = shlex.quote(report["id"]), shlex.quote(report["branch"])
    on = report["stands_on"]
    ground = on["commit"][:12] if on else report["target"] or "HEAD"
    stack = "--stack " if on else ""
    compared = shlex.quote(f"{ground}...{report['branch']}")
    commands = (
        f"git diff {compared}",
        f"patchq accept {stack}{id}     # or: git merge {branch}",
        f"patchq send-back {id} -m TEXT",
        f"patchq discard {id}",
    )
    return [fence("\n".join(commands), "sh")]


def _table(edits: Sequence[EditEntry]) -> list[str]:
    """The edits, one row each; lines are those of the base."""
    if not edits:
        return []
    rows = ["| edit | what | file | lines | state | match | description |", "|---" * 7 + "|"]
    for edit in edits[:_MOST_ROWS]:
        lines = "-".join(map(str, dict.fromkeys(edit["lines"] or ())))
        state: str = edit["state"]
        if edit["cancelled_by"]:
            state += f" by {inline(edit['cancelled_by'])}"
        if edit["needs"]:
            state += f", needs {', '.join(inline(id, 50) for id in edit['needs'][:5])}"
        description = inline(edit["description"], 1200) if edit["description"] else ""
        what = (inline(edit["id"], 50), edit["op"], inline(edit["path"]))
        cells = (*what, lines, state, edit["match"] or "", description)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if len(edits) > _MOST_ROWS:
        rows.append(f"\n… and {len(edits) - _MOST_ROWS} more edits")
    return ["## Edits", "\n".join(rows)]


def _corrections(report: Report) -> Iterator[str]:
    """Which texts are not those of the response, and who changed them."""
    by = {"model": "the configured model", "program": "patchq, which undid its escapes"}
    lines = [
        f"- the {one['what']} text of edit {inline(one['edit'], 50)}: {by[one['by']]}"
        for one in report["corrections"]
    ]
    if lines:
        yield "## Corrected"
        yield "These texts are not as the response has them; look at the diff:"
        yield "\n".join(lines)


# ---------------------------------------------------------------- what went wrong


def _named(report: Report, problem: ProblemEntry) -> str:
    """The edit that a problem is of, by its id and by what the response says that it is for."""
    id = problem["edit"]
    if not id:
        return ""
    edits = (edit["description"] for edit in report["edits"] if edit["id"] == id)
    description = next(edits, None)
    return f", edit {inline(id)}" + (f" ({inline(description, 80)})" if description else "")


def _section(
    problem: ProblemEntry,
    name: str,
    shown: Evidence = NOTHING,
    lines: Sequence[str] = (),
    quote: str = "",
) -> str:
    """What there is to say of one problem, of the edit called `name`; `lines` are those of its
    file that there is room for, of those that were to be shown."""
    what = "Warning" if problem["severity"] == "warning" else "Error"
    place = name + (f", {inline(problem['path'])}" if problem["path"] else "")
    if problem["line"]:
        place += f"{'' if problem['path'] else ', response'} line {problem['line']}"
    code = CODES.get(problem["code"])
    parts = [f"## {what} {inline(problem['code'])}{place}", *_sentences(problem["message"])]
    todo, *quoted = _sentences(problem["hint"] or (code.cure if code else ""))
    parts += [f"**To do:** {todo}", *quoted]
    parts += _collision(problem["conflicts_with"]) if problem["conflicts_with"] else []
    if quote:
        quoted = quote.removesuffix("\n").split("\n")
        parts += ["The quote that was not found:", fence("\n".join(quoted[:MAX_QUOTE_LINES]))]
        if len(quoted) > MAX_QUOTE_LINES:
            parts.append(f"… {len(quoted) - MAX_QUOTE_LINES} more lines of it are left out here")
    if lines:
        parts += ["The file's lines, with their numbers:", fence(excerpt(lines, shown.first))]
    if len(lines) < len(shown.lines):
        parts.append(f"… {len(shown.lines) - len(lines)} more lines of the file are left out here")
    return "\n\n".join([*parts, *_candidates(problem["candidates"])])


def _sentences(message: str) -> list[str]:
    """A message: its first line as a sentence, what follows as a quotation."""
    first, _, rest = message.partition("\n")
    return [sentence(first), *([fence(rest)] if rest.strip() else [])]


def _collision(other: CollisionEntry) -> list[str]:
    named = [
        f"{key} {inline(value)}"
        for key in ("batch", "edit", "commit", "agent", "path")
        if (value := other[key])
    ]
    if other["lines"]:
        named.append(f"lines {other['lines'][0]}-{other['lines'][1]}")
    return [f"It collides with {', '.join(named)}."] if named else []


def _candidates(candidates: Sequence[CandidateEntry]) -> Iterator[str]:
    """The places that may be meant, and what to quote in addition to mean one of them."""
    if candidates:
        yield "The places that it may mean:"
    for candidate in candidates[:_MOST_CANDIDATES]:
        symbol = f" in {inline(candidate['symbol'])}" if candidate["symbol"] else ""
        text = f": {inline(candidate['text'].strip())}" if candidate["text"].strip() else ""
        yield f"- {inline(candidate['path'])} line {candidate['line']}{symbol}{text}"
        if candidate["disambiguate"] is not None:
            yield "To mean this one, quote also:"
            yield fence(candidate["disambiguate"] + "\n")
    if len(candidates) > _MOST_CANDIDATES:
        yield f"… and {len(candidates) - _MOST_CANDIDATES} more"


def _hooks(report: Report) -> Iterator[str]:
    """The output of the hooks that did not pass, where the problems do not have all of it."""
    messages = [problem["message"] for problem in report["problems"]]
    for hook in report["hooks"]:
        if hook["exit"] != 0 and not any(hook["output"] in message for message in messages):
            how = "was stopped" if hook["exit"] is None else f"ended with {hook['exit']}"
            yield f"## Hook {inline(hook['id'])} {how}"
            if hook["output"]:
                yield fence(hook["output"])


# ---------------------------------------------------------------- what to send


def _what_to_send(report: Report, instructions: str, foreseen: bool) -> list[str]:
    if (report["source"]["name"] or "").endswith(REQUEST) and not report["attempts"]:
        return [
            "## What to send",
            f"Correct the request, and drop it again under a name that ends in `{REQUEST}`.",
        ]
    codes = {problem["code"] for problem in report["problems"]}
    retried = report["retry"]["of"] if foreseen else report["id"]
    header = [f"retries: {retried}"] if retried else []
    if report["base"] and not codes & _BASE_IN_DOUBT:
        header.append(f"base: {report['base']['commit']}")
    good = [inline(edit["id"], 50) for edit in report["edits"] if edit["state"] == "ready"]
    parts = [
        "## What to send",
        "Send the whole response again with these problems corrected: it is applied as a whole or "
        "not at all." + " Begin it with" * bool(header),
    ]
    if header:
        parts.append(fence("\n".join(["---", *header, "---"])))
    if instructions:
        and_then = "and then write" if header else "Write"
        parts += [f"{and_then} the edits like this:", fence(instructions)]
    if good:
        more = ", …" if len(good) > _MOST_ROWS else ""
        parts.append(f"Good as they are, and to be repeated: {', '.join(good[:_MOST_ROWS])}{more}.")
    return parts


def _joined(parts: Sequence[str], diff: str) -> str:
    """The parts and the diff, as far as a page holds them."""
    page = ""
    for number, part in enumerate(parts):
        if _bytes([page, part]) > MAX_BYTES - _LEAST_DIFF:
            page += f"… {len(parts) - number} more parts are left out here\n\n"
            break
        page += f"{part}\n\n"
    # A third: the fence round a long run of backticks is as long as the run, at either end.
    room = (MAX_BYTES - _bytes([page])) // 3
    if diff:
        shown = visible(diff, keep="\n\t").encode()
        cut = "" if len(shown) <= room else "\n… more is left out here"
        page += f"## Diff\n\n{fence(shown[:room].decode(errors='ignore') + cut, 'diff')}\n"
    return page.rstrip("\n") + "\n"


def _bytes(parts: Sequence[str]) -> int:
    return sum(len(part.encode()) + 2 for part in parts)
