"""Git commands that talk to a remote, and never ask for a password.

The person's own credentials (helpers, keys, an agent) serve.  Hooks of this repository do not run:
patchq's own `pre-push` would ask patchq.  A remote's words are passed on without the credentials
that a URL may hold.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePath

from msgspec import Struct, field

from patchq.gate.git.command import QUIET, Git, plain_environment

_OPTIONS = (
    *QUIET,
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "core.askPass="),
    *("-c", "push.followTags=false"),
)
_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_COMMAND")
_KEPT_OF = ("GIT_SSL_", "GIT_HTTP_", "GIT_TRACE")
_CREDENTIALS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/@\s'\"]+@")
MOST_WORDS = 1500


def redacted(text: str) -> str:
    """Return the text without the credentials in URLs."""
    return _CREDENTIALS.sub(r"\1", text)


class Done(Struct, frozen=True):
    """The end of a git process; `code` is None where its time was up."""

    code: int | None
    out: str
    err: str

    @property
    def words(self) -> str:
        """The complaint for people: the remote's own lines, if there are any, else git's."""
        lines = [line.strip() for line in self.err.splitlines()]
        remotes = [line.removeprefix("remote:").strip() for line in lines if line[:7] == "remote:"]
        gits = [
            re.sub(r"^(fatal|error): ", "", line)
            for line in lines
            if line[:7] in ("fatal: ", "error: ", "ERROR: ") or line.startswith("ssh:")
        ]
        words = "; ".join(filter(None, remotes or gits or lines)) or "git gave no reason"
        return redacted(words)[:MOST_WORDS]


class Transport(Struct, frozen=True):
    """Git in a directory, with the ssh command of its configuration, for so many seconds.

    `variables` are added to its environment; an empty one is taken out."""

    place: Path
    ssh: str | None
    seconds: float
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, *words: str, stdin: bytes = b"") -> Done:
        """Run git to its end, or end it with all that it started."""
        options = (*_OPTIONS, "-C", str(self.place))
        try:
            done = Git(self._environment(), options, seconds=self.seconds).run(*words, stdin=stdin)
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            late_words = f"\nerror: it did not end within {self.seconds:g} s\n"
            code, out, err = None, b"", (late.stderr or b"") + late_words.encode()
        return Done(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if key in _KEPT or key.startswith(_KEPT_OF)
        }
        ssh = kept.get("GIT_SSH_COMMAND") or self.ssh or ("" if "GIT_SSH" in kept else "ssh")
        if PurePath(ssh.split(" ")[0]).name == "ssh":
            kept["GIT_SSH_COMMAND"] = f"{ssh} -oBatchMode=yes"
        environment = plain_environment(
            GIT_TERMINAL_PROMPT="0", SSH_ASKPASS_REQUIRE="never", GCM_INTERACTIVE="never", **kept
        )
        environment |= {"SSH_ASKPASS": "", **self.variables}
        return {name: value for name, value in environment.items() if value}
