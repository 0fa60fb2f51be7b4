"""A mapping of files seen as a tree, for batches that no repository takes part in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patchq.core.model.listing import Listing, Unreadable
from patchq.core.model.values import Entry

# Contents by path: relative to one root, with `/` between directories.
Files = Mapping[str, str | bytes]

_FILE, _DIRECTORY = Entry("file", ""), Entry("tree", "")


class MappedTree:
    """The files of a mapping.  Each is read once, when it is needed.

    Raises `TypeError` or `ValueError` for a key that is no path.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._names: dict[str, dict[str, None]] = {"": {}}  # the names in each directory
        self._contents: dict[str, bytes] = {}
        self._paths = dict.fromkeys(files)
        for path in self._paths:
            _check(path)
            directory, _, name = path.rpartition("/")
            while directory not in self._names:
                self._names[directory] = {name: None}
                directory, _, name = directory.rpartition("/")
            self._names[directory][name] = None

    def entry(self, path: str) -> Entry | None:
        if path in self._paths:
            return _FILE
        return _DIRECTORY if path in self._names else None

    def read(self, path: str) -> bytes:
        if path not in self._contents:
            try:
                data = self._files[path]
                self._contents[path] = data.encode() if isinstance(data, str) else bytes(data)
            except (LookupError, OSError, UnicodeError) as error:
                raise Unreadable(f"{path} cannot be read: {error!r}") from error
        return self._contents[path]

    def names(self, directory: str) -> tuple[str, ...]:
        return tuple(self._names.get(directory, ()))

    def paths(self) -> Iterator[str]:
        return iter(self._paths)

    def listing(self) -> Listing:
        return Listing.of(self.paths())

    def filtered(self, path: str) -> str | None:
        return None  # a mapping has the files' texts


def _check(path: object) -> None:
    if not isinstance(path, str):
        raise TypeError(f"files: expected each key to be a path as str, got {path!r}")
    if not path or any(part in f"/{path}/" for part in ("//", "/./", "/../")):
        raise ValueError(
            f"files: expected each key to be a path below one root, like 'src/a.py', got {path!r}"
        )
