"""Regular expressions that are compiled when they are first used.

The grammars have hundreds of them, of which most texts need few: to compile all takes longer than
to read a short response.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    class _Match(Protocol):
        def __call__(
            self, string: str, pos: int = ..., endpos: int = ...
        ) -> re.Match[str] | None: ...

    class _Iterate(Protocol):
        def __call__(
            self, string: str, pos: int = ..., endpos: int = ...
        ) -> Iterator[re.Match[str]]: ...

    class _List(Protocol):
        def __call__(self, string: str, pos: int = ..., endpos: int = ...) -> list[Any]: ...

    class _Split(Protocol):
        def __call__(self, string: str, maxsplit: int = ...) -> list[str | Any]: ...

    class _Replace(Protocol):
        def __call__(
            self, repl: str | Callable[[re.Match[str]], str], string: str, count: int = ...
        ) -> str: ...

    class _ReplaceAndCount(Protocol):
        def __call__(
            self, repl: str | Callable[[re.Match[str]], str], string: str, count: int = ...
        ) -> tuple[str, int]: ...


_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


class Pattern:
    """What `re.compile` would make of the same words, as far as its methods go.

    The first call of one compiles; from then on they are attributes, which are found as fast as the
    methods of what is compiled.
    """

    __slots__ = ("_flags", "pattern", *_METHODS)
    findall: _List
    finditer: _Iterate
    fullmatch: _Match
    match: _Match
    search: _Match
    split: _Split
    sub: _Replace
    subn: _ReplaceAndCount

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    if not TYPE_CHECKING:  # who checks types would take any name for one that there is

        def __getattr__(self, name: str) -> object:
            if name not in _METHODS:
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self._flags)
            for method in _METHODS:
                setattr(self, method, getattr(compiled, method))
            return getattr(compiled, name)
