"""A commit's tree held in a dict, for tests that need no repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patchq.model import Entry, EntryKind


class DictTree:
    """Files by path; `others` are paths that hold something else than a file."""

    def __init__(
        self,
        files: Mapping[str, bytes | str],
        others: Mapping[str, EntryKind] | None = None,
        filters: Mapping[str, str] | None = None,
    ) -> None:
        self.files = {p: d.encode() if isinstance(d, str) else d for p, d in files.items()}
        self.others = dict(others or {})
        self.filters = dict(filters or {})

    def entry(self, path: str) -> Entry | None:
        if path in self.files:
            return Entry("file", "0" * 40)
        if path in self.others:
            return Entry(self.others[path], "0" * 40)
        return Entry("tree", "0" * 40) if self.names(path) else None

    def read(self, path: str) -> bytes:
        return self.files[path]

    def names(self, directory: str) -> tuple[str, ...]:
        prefix = f"{directory}/" if directory else ""
        below = [p[len(prefix) :] for p in (*self.files, *self.others) if p.startswith(prefix)]
        return tuple(dict.fromkeys(p.split("/")[0] for p in below))

    def paths(self) -> Iterator[str]:
        return iter(self.files)

    def filtered(self, path: str) -> str | None:
        return self.filters.get(path)
