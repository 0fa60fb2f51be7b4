"""What came of asking a model for a response, as it is kept beside the claim until the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from patchq.model.values import Attempt, Problem


@dataclass(frozen=True, slots=True)
class Asked:
    """The attempts; what refuses the request, if anything does; the prompt to send by hand where
    there was no answer; the mode that was asked for; and the anchors to choose from, by path."""

    attempts: tuple[Attempt, ...] = ()
    problems: tuple[Problem, ...] = ()
    prompt: str | None = None
    mode: str | None = None
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def to_json(asked: Asked) -> dict[str, Any]:
    """As JSON keeps it; of a problem, what a request can have."""
    return {
        "attempts": [asdict(attempt) for attempt in asked.attempts],
        "problems": [
            [one.code, one.message, one.hint, one.path, one.line] for one in asked.problems
        ],
        "prompt": asked.prompt,
        "mode": asked.mode,
        "candidates": {path: list(lines) for path, lines in asked.candidates.items()},
    }


def from_json(told: Mapping[str, Any]) -> Asked:
    """What `to_json` told."""
    return Asked(
        tuple(Attempt(**attempt) for attempt in told["attempts"]),
        tuple(
            Problem(code, message, hint, path=path, line=line)
            for code, message, hint, path, line in told["problems"]
        ),
        told["prompt"],
        told["mode"],
        {path: tuple(lines) for path, lines in told["candidates"].items()},
    )
