"""Values that nothing may change.

A frozen dataclass costs at the start of a process, where Python writes and compiles six methods
for each class, and for each value, as it sets every field through `object.__setattr__`: six times
as dear as one that is not frozen.  These are frozen to the type checker, which sees the same, and
not to Python; and all their methods but `__init__` are made of functions that are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def frozen(cls: type[T], /) -> type[T]: ...


@overload
def frozen(*, slots: bool = True, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: type[T] | None = None, /, *, slots: bool = True, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """A dataclass with equality, hash and representation by its fields; nothing may change it.
    Without `slots` it can keep what it worked out (`cached_property`)."""

    def made(cls: type[T]) -> type[T]:
        new = dataclass(slots=slots, kw_only=kw_only, repr=False, eq=False)(cls)
        for method in _methods(new):
            if method.__name__ not in cls.__dict__:
                setattr(new, method.__name__, method)
        return new

    return made if cls is None else made(cls)


def _methods(cls: type[Any]) -> tuple[Callable[..., object], ...]:
    compared = [one.name for one in fields(cls) if one.compare]
    shown = [one.name for one in fields(cls) if one.repr]
    values = attrgetter(*compared) if compared else lambda value: ()

    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(values(self) == values(other))

    def __hash__(self: object) -> int:
        return hash(values(self))

    def __repr__(self: object) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({said})"

    return __eq__, __hash__, __repr__
