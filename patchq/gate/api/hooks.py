"""The shipped hooks, in the configuration and in git's own places: put to work, and taken away.

What was changed is put down in the git directory, so that it can be restored to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patchq.gate.api.location import Location, write_file
from patchq.gate.config import config_file
from patchq.gate.errors import UsageError
from patchq.gate.hooks import configured, install
from patchq.gate.hooks.install import GATE as GATE
from patchq.gate.hooks.install import HookFile

RECORD = "patchq-hooks.json"


def listing(location: Location) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks for the configuration, and those for git's own places."""
    config = location.rules().config
    shipped = [
        {
            "name": name,
            "does": does,
            "enabled": install.is_enabled(config, name),
            "path": str(configured.script(name)),
        }
        for name, does in configured.SUMMARIES.items()
    ]
    places = [
        {
            "name": place.name,
            "does": configured.GIT_SUMMARIES[place.name],
            "state": place.state,
            "path": str(place.file),
        }
        for place in _places(location)
    ]
    return {"hooks": shipped, "git": places}


def switch_on(location: Location) -> bool | None:
    """Put the default gate into the configuration; False if it is there, None if that is a person's
    to do."""
    path = location.draft
    before = config_file.content(path)
    if before is not None and install.is_enabled(config_file.parse(before, path.name)):
        return False
    after = config_file.sample().encode() if before is None else install.enable(before)
    if after is None:
        return None
    _record(location, "config", [str(path), before and before.decode(), after.decode()])
    write_file(path, after)
    return True


def wire(location: Location) -> list[HookFile]:
    """Put the hooks into git's own places; return those that were not there."""
    settings = _recorded(location).get("settings", [])
    installed: list[HookFile] = []
    for place in _places(location):
        if install.install(place):
            installed.append(place)
    missing = install.to_set_up(location.repo.commondir)
    # Its being there says that this one is guarded.
    _record(location, "settings", [*missing, *settings])
    install.set_up(location.repo.commondir, missing)
    return installed


def restore(location: Location) -> tuple[list[str], str | None]:
    """Take all of it away; return the restored files, and a note on what is left to do."""
    record, note = _recorded(location), None
    restored = [str(place.file) for place in _places(location) if install.uninstall(place)]
    install.take_down(location.repo.commondir, record.get("settings", []))
    if "config" in record:
        name, before, after = record["config"]
        path = Path(name)
        if path.exists() and path.read_bytes() == after.encode():
            if before is None:
                path.unlink()
            else:
                write_file(path, before.encode())
            restored.append(name)
        else:
            note = f"{name} was changed since; take the gate out of it by hand, if it has to go"
    (location.repo.commondir / RECORD).unlink(missing_ok=True)
    return restored, note


def _places(location: Location) -> Iterator[HookFile]:
    return install.places(location.repo.workdir or location.repo.commondir)


def _recorded(location: Location) -> dict[str, Any]:
    path = location.repo.commondir / RECORD
    data = config_file.content(path)
    try:
        return dict(json.loads(data)) if data else {}
    except (ValueError, TypeError):
        raise UsageError(
            f"{path} cannot be read, and it alone knows what `install` changed",
            "remove it, and take the gate out of the configuration by hand, if it has to go",
        ) from None


def _record(location: Location, key: str, value: object) -> None:
    text = json.dumps({**_recorded(location), key: value}, indent=1)
    write_file(location.repo.commondir / RECORD, f"{text}\n".encode())
