"""A goal: what was measured, round by round, and the limit that its median must keep."""

from __future__ import annotations

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
