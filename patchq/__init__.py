"""patchq: the gate between LLM agents and git branches.

As a library: `patchq.apply` gives what a model's answer makes of a mapping of files.
"""

TYPE_CHECKING = False  # true for type checkers; `typing` takes long to load

if TYPE_CHECKING:
    from patchq.core.api import (
        Refused,
        Result,
        Rules,
        apply,
        formats,
        instructions,
        parse,
        plan,
    )

__version__ = "0.1.0"
__all__ = [
    "Refused",
    "Result",
    "Rules",
    "apply",
    "formats",
    "instructions",
    "parse",
    "plan",
]


if not TYPE_CHECKING:  # type checkers would take any name for one that is here

    def __getattr__(name: str) -> object:
        """Load the library when one of its names is asked for; no command needs it."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from patchq.core import api

        return getattr(api, name)
