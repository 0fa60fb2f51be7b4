"""The main job, shown: a repository, a daemon, four agents' responses, four verdicts.

Everything happens in a temporary directory, which is removed at the end (`--keep` leaves it).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOGIN = """\
class Login:
    def check(self, name, password):
        user = self.users.get(name)
        return user.password == password

    def forget(self, name):
        user = self.users.get(name)
        user.token = None
"""

GOOD = """\
A user who does not exist must not crash the login.

src/login.py
<<<<<<< SEARCH
        return user.password == password
=======
        return user is not None and user.password == password
>>>>>>> REPLACE
"""

BAD = """\
src/login.py
<<<<<<< SEARCH
    def check(self, user_name, password):
        user = self.users[user_name]
=======
    def check(self, user_name, password):
        user = self.users.get(user_name)
>>>>>>> REPLACE
"""

AMBIGUOUS = """\
src/login.py
<<<<<<< SEARCH
        user = self.users.get(name)
=======
        user = self.users.get(name.lower())
>>>>>>> REPLACE
"""

OVERLAPPING = """\
src/login.py
<<<<<<< SEARCH
    def forget(self, name):
        user = self.users.get(name)
=======
    def forget(self, name):
        user = self.users[name]
>>>>>>> REPLACE

src/login.py
<<<<<<< SEARCH
        user = self.users.get(name)
        user.token = None
=======
        self.users.get(name).token = None
>>>>>>> REPLACE
"""

RESPONSES = {"good": GOOD, "bad": BAD, "ambiguous": AMBIGUOUS, "overlapping": OVERLAPPING}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the repository behind")
    args = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="patchq-demo-"))
    try:
        return demo(place / "project")
    finally:
        if args.keep:
            print(f"\nThe repository is in {place / 'project'}")
        else:
            shutil.rmtree(place)


def demo(repo: Path) -> int:
    title("A repository")
    (repo / "src").mkdir(parents=True)
    (repo / "src" / "login.py").write_text(LOGIN)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "Start")
    show(repo, "git", "log", "--oneline")

    title("The daemon watches beside it")
    patchq(repo, "init")
    patchq(repo, "watch", "--detach")
    try:
        title("Agents drop their responses: any program that can write a file will do")
        for name, text in RESPONSES.items():
            drop(repo, name, text)
            print(f"  .patchq/inbox/{name}.md")
        reports = [verdict(repo, name) for name in RESPONSES]
        title("Every response has one verdict")
        patchq(repo, "log")
        patchq(repo, "status")
        title("What the good one became: a branch to review")
        show(repo, "git", "log", "--oneline", "--all")
        show(repo, "git", "diff", "main...patchq/good")
        for report in reports[1:]:
            title(f"What the agent of {report.name.split('.')[0]!r} is told")
            print(indented(report.with_suffix("").with_suffix(".report.md").read_text()))
        title("A person accepts")
        patchq(repo, "accept", "good")
        show(repo, "git", "log", "-1", "--format=%an: %B", "main")
        show(repo, "git", "status", "--short", "--branch")
    finally:
        patchq(repo, "stop")
    return 0


def drop(repo: Path, name: str, text: str) -> None:
    """Write beside the inbox's names, then rename: so the file is complete when it is seen."""
    inbox = repo / ".patchq" / "inbox"
    (inbox / f"{name}.md.tmp").write_text(text)
    (inbox / f"{name}.md.tmp").rename(inbox / f"{name}.md")


def verdict(repo: Path, name: str) -> Path:
    """Wait for the report; its path."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for place in ("done", "rejected"):
            report = repo / ".patchq" / place / f"{name}.report.json"
            if report.exists():
                return report
        time.sleep(0.01)
    raise SystemExit(f"no verdict on {name} within 30 seconds")


def patchq(repo: Path, *words: str) -> None:
    show(repo, "patchq", *words, command=[sys.executable, "-m", "patchq", *words])


def show(repo: Path, *words: str, command: list[str] | None = None) -> None:
    print(f"$ {' '.join(words)}")
    done = subprocess.run(
        command or list(words), cwd=repo, env=environment(), capture_output=True, text=True
    )
    print(indented(done.stdout + done.stderr), flush=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} exited {done.returncode}")


def git(repo: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=repo, env=environment(), check=True)


def environment() -> dict[str, str]:
    """The demo's own author, whatever git is configured to."""
    me = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in ME}
    return {**{k: v for k, v in os.environ.items() if not k.startswith("GIT_")}, **me}


ME = (("NAME", "Demo"), ("EMAIL", "demo@example.org"))


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.rstrip().splitlines())


if __name__ == "__main__":
    sys.exit(main())
