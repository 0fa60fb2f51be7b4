"""A goal: what was measured, round by round, and the limit that its median must keep."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit and what was measured, round by round."""

    name: str
    values: list[float]
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        value = median(self.values)
        return value >= self.limit if self.at_least else value <= self.limit

    def line(self) -> str:
        sign = ">=" if self.at_least else "<="
        rounds = " ".join(f"{value:.3g}" for value in self.values)
        verdict = "met   " if self.met else "MISSED"
        return f"{verdict} {self.name}: {median(self.values):.3g} ({sign} {self.limit:g}; {rounds})"


Found = dict[str, list[Goal]]
"""The goals of each part of a bench, by its name."""


def table(found: Found, value: str) -> str:
    """A line for each goal; `value` says what its median is."""
    width = max((len(goal.name) for goals in found.values() for goal in goals), default=4)
    lines = [f"{'part':10} {'what':{width}} {value:>8} {'goal':>8}  verdict"]
    for part, goals in found.items():
        for goal in goals:
            limit = f"{'>=' if goal.at_least else '<='} {goal.limit:g}"
            verdict = "met" if goal.met else "MISSED"
            lines.append(
                f"{part:10} {goal.name:{width}} {median(goal.values):8.3g} {limit:>8}  {verdict}"
            )
    return "\n".join(lines)


def record(found: Found) -> str:
    """Every number, as JSON."""
    rows = [
        {"part": part, "what": goal.name, "rounds": goal.values, "goal": goal.limit}
        for part, goals in found.items()
        for goal in goals
    ]
    return json.dumps(rows, indent=1) + "\n"


def all_met(found: Found) -> bool:
    return all(goal.met for goals in found.values() for goal in goals)
