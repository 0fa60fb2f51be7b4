"""Frozen values of which thousands are made for one response.

A frozen dataclass sets each field through `object.__setattr__`, which makes it six times as dear to
make as one that is not: a third of what planning a long response took.  These are frozen to the
type checker, which sees the same, and not to Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def hot(cls: type[T]) -> type[T]:
    """A dataclass with slots, equality and hash of its fields; nothing may change it."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
