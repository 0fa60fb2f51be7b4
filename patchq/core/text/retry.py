"""The text that asks a model for a refused response again.

Only this text shows lines of files, and only it states that nothing was applied.  Quotations go
through `quote`, so that none can pass for a sentence of patchq.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from patchq.core.model.values import Candidate, Collision, Problem
from patchq.core.text.quote import excerpt, fence, inline, line_words, sentence

NOTHING_APPLIED = "The response was refused. Nothing of it was applied."
WHAT_TO_SEND = "## What to send"
MAX_EXCERPT_LINES = 200
MAX_QUOTE_LINES = 60
MAX_PROMPT_BYTES = 32 * 1024
_MOST_CANDIDATES = 20
_MOST_GOOD = 100


def prompt(
    problems: Sequence[Problem],
    descriptions: Mapping[str, str | None],
    ending: Sequence[str],
    first: str = NOTHING_APPLIED,
) -> str:
    """Return the prompt: `first`, a section for each problem, and the `ending`.

    The errors come first; the `ending` is never left out.  `descriptions` are those of the edits,
    by their ids.
    """
    shown = _sections(problems, descriptions, MAX_PROMPT_BYTES - bytes_of(ending))
    return "\n\n".join([first, *shown, *ending]) + "\n"


def what_to_send(
    instructions: str, good: Sequence[str] = (), header: Sequence[str] = ()
) -> list[str]:
    """Return the parts that ask for the whole response again.

    `good` are the ids of the edits that may stay; `header` are the lines of the front matter.
    """
    parts = [
        WHAT_TO_SEND,
        "Send the whole response again with these problems corrected: it is applied as a whole or "
        "not at all." + " Begin it with" * bool(header),
    ]
    if header:
        parts.append(fence("\n".join(["---", *header, "---"])))
    if instructions:
        and_then = "and then write" if header else "Write"
        parts += [f"{and_then} the edits like this:", fence(instructions)]
    if good:
        more = ", …" if len(good) > _MOST_GOOD else ""
        named = ", ".join(inline(id, 50) for id in good[:_MOST_GOOD])
        parts.append(f"Good as they are, and to be repeated: {named}{more}.")
    return parts


def _sections(
    problems: Sequence[Problem], descriptions: Mapping[str, str | None], room: int
) -> Iterator[str]:
    """Yield a section for each problem, up to `room` bytes.

    Excerpts and quotes are shortened before a problem is left out.
    """
    in_order = sorted(problems, key=lambda problem: problem.severity == "warning")
    lines_left = MAX_EXCERPT_LINES
    for number, problem in enumerate(in_order):
        kept = problem.excerpt[1][:lines_left] if problem.excerpt else ()
        quote = problem.quote or ""
        while bytes_of([text := section(problem, descriptions, kept, quote)]) > room:
            if not (kept or quote):
                yield f"… {len(in_order) - number} more problems are left out here"
                return
            quote = quote if kept else ""
            kept = kept[: len(kept) // 2]
        lines_left -= len(kept)
        room -= bytes_of([text])
        yield text


def section(
    problem: Problem,
    descriptions: Mapping[str, str | None],
    lines: Sequence[str] = (),
    quote: str = "",
) -> str:
    """Return the section on one problem, with its quote and excerpt.

    `lines` are the first lines of the excerpt.
    """
    what = "Warning" if problem.severity == "warning" else "Error"
    place = _named(problem, descriptions) + (f", {inline(problem.path)}" if problem.path else "")
    if problem.line:
        place += f"{'' if problem.path else ', response'} line {problem.line}"
    parts = [f"## {what} {inline(problem.code)}{place}", *_sentences(problem.message)]
    if problem.hint:
        todo, *more = _sentences(problem.hint)
        parts += [f"**To do:** {todo}", *more]
    parts += _collision(problem.conflicts_with) if problem.conflicts_with else []
    if quote:
        quoted = quote.removesuffix("\n").split("\n")
        parts += ["The quote that was not found:", fence("\n".join(quoted[:MAX_QUOTE_LINES]))]
        if len(quoted) > MAX_QUOTE_LINES:
            parts.append(f"… {len(quoted) - MAX_QUOTE_LINES} more lines of it are left out here")
    first, all_lines = problem.excerpt or (1, ())
    if lines:
        parts += ["The file's lines, with their numbers:", fence(excerpt(lines, first))]
    if len(lines) < len(all_lines):
        parts.append(f"… {len(all_lines) - len(lines)} more lines of the file are left out here")
    return "\n\n".join([*parts, *_candidates(problem.candidates)])


def bytes_of(parts: Sequence[str]) -> int:
    """Return the bytes of the parts, with an empty line behind each."""
    return sum(len(part.encode()) + 2 for part in parts)


def _named(problem: Problem, descriptions: Mapping[str, str | None]) -> str:
    if not problem.edit:
        return ""
    description = descriptions.get(problem.edit)
    more = f" ({inline(description, 80)})" if description else ""
    return f", edit {inline(problem.edit)}{more}"


def _sentences(message: str) -> list[str]:
    first, _, rest = message.partition("\n")
    return [sentence(first), *([fence(rest)] if rest.strip() else [])]


def _collision(other: Collision) -> list[str]:
    names = {
        "change": other.batch,
        "edit": other.edit,
        "commit": other.commit,
        "agent": other.agent,
        "path": other.path,
    }
    named = [f"{key} {inline(value)}" for key, value in names.items() if value]
    if other.lines:
        named.append(line_words(other.lines))
    # Who only waits for another change names that alone, and its message says so.
    return [f"It collides with {', '.join(named)}."] if other.edit or other.path else []


def _candidates(candidates: Sequence[Candidate]) -> Iterator[str]:
    if candidates:
        yield "The places that it may mean:"
    for candidate in candidates[:_MOST_CANDIDATES]:
        symbol = f" in {inline(candidate.symbol)}" if candidate.symbol else ""
        text = f": {inline(candidate.text.strip())}" if candidate.text.strip() else ""
        yield f"- {inline(candidate.path)} line {candidate.line}{symbol}{text}"
        if candidate.disambiguate is not None:
            yield "To mean this one, begin the quote and what replaces it with:"
            yield fence(candidate.disambiguate + "\n")
    if len(candidates) > _MOST_CANDIDATES:
        yield f"… and {len(candidates) - _MOST_CANDIDATES} more"
