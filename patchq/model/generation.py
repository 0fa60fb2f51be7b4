"""What came of asking a model for a response, as it is kept beside the claim until the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from patchq.model.values import Attempt, Problem


@dataclass(frozen=True, slots=True)
class Generation:
    """The attempts; what refuses the request, if anything does; the prompt to send by hand where
    there was no answer; the mode that was asked for; and the anchors to choose from, by path."""

    attempts: tuple[Attempt, ...] = ()
    problems: tuple[Problem, ...] = ()
    prompt: str | None = None
    mode: str | None = None
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def to_json(generation: Generation) -> dict[str, Any]:
    """As JSON keeps it; of a problem, what a request can have."""
    return {
        "attempts": [asdict(attempt) for attempt in generation.attempts],
        "problems": [
            [one.code, one.message, one.hint, one.path, one.line] for one in generation.problems
        ],
        "prompt": generation.prompt,
        "mode": generation.mode,
        "candidates": {path: list(lines) for path, lines in generation.candidates.items()},
    }


def from_json(value: Mapping[str, Any]) -> Generation:
    """What `to_json` kept."""
    return Generation(
        tuple(Attempt(**attempt) for attempt in value["attempts"]),
        tuple(
            Problem(code, message, hint, path=path, line=line)
            for code, message, hint, path, line in value["problems"]
        ),
        value["prompt"],
        value["mode"],
        {path: tuple(lines) for path, lines in value["candidates"].items()},
    )
