"""The machine's files that a hook in the sandbox sees, read-only.

A hook runs the batch's code, and what it prints goes to whoever sent the batch.  So it sees what
programs are made of, and nothing that is anybody's: the system's own directories, of `/etc` what
programs look up, the directories of its PATH with their neighbours, and what its entry's
`visible` names.  Everything else (homes, other repositories, sockets, mail, the queue) is left out.
In what is shown, files and directories that hold keys by their names are hidden again.

Of a directory `bin` the `lib` beside it is shown; all that is beside it where that is one
installation: a virtual environment, conda's, a version manager's shims, a tree of Node, Go or Java.
Links are followed, since that is where the programs are.  A home directory never counts as one.
"""

from __future__ import annotations

import os
import pwd
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from time import monotonic

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/sys/devices/system/cpu", "/sys/devices/system/node",
    *(f"/etc/{name}" for name in (
        "alternatives", "bash.bashrc", "bashrc", "ca-certificates", "ca-certificates.conf",
        "crypto-policies", "debian_version", "fonts", "group", "host.conf", "hostname", "hosts",
        "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf",
        "localtime", "magic", "mime.types", "nsswitch.conf", "os-release", "passwd", "perl", "php",
        "pki/ca-trust", "pki/java", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf",
        "profile", "protocols", "redhat-release", "resolv.conf", "services", "shells",
        "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "static", "terminfo", "timezone",
    )),
)  # fmt: skip
# Places below them that are not the system's own.
_OTHERS = ("/usr/home", "/usr/src", "/usr/local/etc", "/usr/local/home", "/usr/local/src",
           "/usr/local/var", "/etc/static/ssh")  # fmt: skip

_KEY_DIRECTORIES = frozenset(
    {".aws", ".azure", ".docker", ".git", ".gnupg", ".kube", ".password-store", ".ssh"}
)
_KEY_FILES = frozenset(
    {
        ".env", ".git-credentials", ".htpasswd", ".my.cnf", ".netrc", ".npmrc", ".pgpass",
        ".pypirc", ".vault-token", ".yarnrc.yml", "_netrc", "auth.json", "credentials",
        "credentials.json", "credentials.toml", "npmrc", "pip.conf", "settings-security.xml",
    }
)  # fmt: skip
_KEY_STARTS = ("id_dsa", "id_ecdsa", "id_ed25519", "id_rsa")
_KEY_ENDINGS = (".jks", ".kdbx", ".key", ".keystore", ".p12", ".pfx", ".ppk")
_KEY_TEXT = b"PRIVATE KEY-----"  # text of a `.pem` that is no mere certificate

_PROGRAMS = ("bin", "condabin", "sbin", "Scripts", "shims")
_BESIDE = ("bin", "include", "lib", "lib32", "lib64", "libexec", "sbin")
# Names that show that a directory above `bin` is one installation.
_INSTALLATIONS = ("conda-meta", "go.env", "jmods", "lib/node_modules", "pyvenv.cfg")
_MOST_LINKS = 2_000
_MOST_PLACES = 200
# Bounds of the search: links in a directory, places that a PATH leads to, entries searched for
# keys, those above others first.
_MOST_ENTRIES = 20_000
_MEMORY_SECONDS = 60.0  # an answer holds so long


def seen(path: str, visible: Iterable[str] = ()) -> list[str]:
    """Return the places that a hook sees (`+…`), and the hidden ones (`-…`).

    `path` is its PATH.  `visible` are absolute."""
    return list(_seen(path, tuple(visible), int(monotonic() // _MEMORY_SECONDS)))


@lru_cache(maxsize=64)
def _seen(path: str, visible: tuple[str, ...], when: int) -> Sequence[str]:
    homes = home_directories()
    more = [*_programs(path, homes), *visible]
    shown = [place for place in more if not _is_system(os.path.realpath(place))]
    above = [place for place in _OTHERS if os.path.isdir(place)]
    hidden = [*above, *(home for home in homes if _is_system(home))]
    keys = [key for place in dict.fromkeys(map(os.path.realpath, shown)) for key in _keys(place)]
    return (
        *(f"+{place}" for place in dict.fromkeys([*_SYSTEM, *more])),
        *(f"-{place}" for place in dict.fromkeys([*hidden, *keys])),
    )


def binds(seen: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return bwrap's options for the places, and the directories to make read-only.

    What does not exist is left out."""
    every = {(word[0], word[1:], os.path.realpath(word[1:])) for word in seen}
    words: list[str] = []
    shown: list[str] = []
    hidden: list[str] = []
    for sign, name, path in sorted(every, key=lambda place: (place[2].count("/"), place)):
        if not os.path.exists(path):
            continue
        if sign == "-":
            if os.path.isdir(path):
                words += ("--tmpfs", path)
                hidden.append(path)
            else:
                words += ("--ro-bind", "/dev/null", path)
            continue
        if not _covers(shown, path) or _covers(hidden, path):
            words += ("--ro-bind-try", path, path)
            shown.append(path)
        if name != path and not _covers(shown, os.path.realpath(os.path.dirname(name))):
            words += ("--symlink", path, name)
    return words, hidden


def _covers(places: Iterable[str], path: str) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def located(place: str, home: Path) -> str:
    """Return an entry of `visible` as an absolute path.

    `~` is who runs this, and a relative path is below the directory `home`.
    """
    return os.path.normpath(os.path.join(home, os.path.expanduser(place)))


def home_directories() -> tuple[str, ...]:
    """Return the real home directories, but never `/`.

    They are this process's, and those of root and of listed users.
    """
    users = (user.pw_dir for user in pwd.getpwall() if 1000 <= user.pw_uid < 60000)
    found = [os.environ.get("HOME", ""), os.path.expanduser("~"), "/root", *users]
    real = (os.path.realpath(home) for home in found if os.path.isabs(home))
    return tuple(dict.fromkeys(home for home in real if home.count("/") > 1 or home == "/root"))


def _is_system(path: str) -> bool:
    return _covers(("/usr", "/nix/store", "/gnu/store"), path) and not _covers(_OTHERS, path)


def _programs(path: str, homes: Sequence[str]) -> Iterator[str]:
    waiting = deque(place for place in path.split(os.pathsep) if os.path.isabs(place))
    known: set[str] = set()
    while waiting and len(known) < _MOST_PLACES:
        place = waiting.popleft()
        real = os.path.realpath(place)
        if real in known or not os.path.isdir(real) or _is_system(real):
            continue
        known.add(real)
        if _covers((real,), "/home") or any(_covers((real,), home) for home in homes):
            continue
        yield place
        above, name = os.path.split(real)
        if name in _PROGRAMS and above not in (*homes, "/"):
            yield from _beside(above, shims=name == "shims")
        links = (entry.path for entry in _entries(real)[:_MOST_LINKS] if entry.is_symlink())
        targets = (os.path.dirname(os.path.realpath(link)) for link in links)
        waiting += (target for target in targets if os.path.basename(target) in _PROGRAMS)


def _beside(above: str, *, shims: bool) -> Iterator[str]:
    whole = shims or any(os.path.exists(f"{above}/{name}") for name in _INSTALLATIONS)
    if whole and (shims or not os.path.exists(f"{above}/.git")):
        yield above
    else:
        yield from (f"{above}/{name}" for name in (*_BESIDE, "pyvenv.cfg"))


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=attrgetter("name"))
    except OSError:
        return []


def _is_key(path: str) -> bool:
    """Return True if a file holds a key, by its name.

    A `.pem` is judged by its text, too.
    """
    name = os.path.basename(path).lower()
    if name.endswith(".pem"):
        try:
            with open(path, "rb") as file:
                return _KEY_TEXT in file.read(1 << 16)
        except OSError:
            return True
    start = name.startswith(_KEY_STARTS) and not name.endswith(".pub")
    return start or name in _KEY_FILES or name.endswith(_KEY_ENDINGS)


def _keys(place: str) -> Iterator[str]:
    waiting, looked = deque([place]), 0
    while waiting and looked < _MOST_ENTRIES:
        for entry in _entries(waiting.popleft()):
            looked += 1
            folder = entry.is_dir(follow_symlinks=False)
            if entry.name in _KEY_DIRECTORIES if folder else _is_key(entry.path):
                yield entry.path
            elif folder:
                waiting.append(entry.path)
