"""Answers without an edit, and what people say and tell a shell beside one."""

from __future__ import annotations

from collections.abc import Sequence

from bench.corpus.rewrites.forms import language
from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.kinds.results import COMMENTS
from bench.corpus.rewrites.registry import Brief, Rewrite, either, exact, kind, refuse
from bench.corpus.rewrites.tasks import Change, is_plain, lines_of

TALK = (
    "To use it, create a file:\n\n`path/to/your_file.py`\n```python\nimport os\nprint(os.name)\n"
    "```\n",
    "Put this into your project:\n\npath/to/file.py\n```python\nx = 1\n```\n\nThen run it.\n",
    "An answer looks like this:\n\n```\npath/to/file.py\n<<<<<<< SEARCH\nold\n=======\nnew\n"
    ">>>>>>> REPLACE\n```\n",
    "I would need to see the file first. Please add these files:\n\n1. `{one}`\n2. `{two}`\n",
    'The traceback says:\n\n```\nTraceback (most recent call last):\n  File "{one}", line 3\n```\n'
    "\nNothing to do.\n",
    "Run this:\n\n```bash\npytest {one}\n```\n",
    "There is nothing to change: {one} does that already.\n",
    "You could write, in `{one}`:\n\n```python\nsome_call()\n```\n\nor leave it.\n",
)


@kind("talk without edits", "talk")
def _talk(brief: Brief) -> Rewrite | None:
    if brief.form.name != "search_replace":
        return None
    paths = [path for path, text in brief.task.before.items() if text.strip()]
    if not paths:
        return None
    text = brief.dice.choice(TALK)
    text = text.replace("{one}", paths[0]).replace("{two}", paths[-1])
    return refuse(text)


@kind("a trailing list of paths", "talk")
def _trailing_list(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    paths = list(brief.task.before)[:3]
    listed = "".join(f"{n}. `{path}`\n" for n, path in enumerate(paths, 1))
    ask = brief.dice.choice(
        ["Please add these files to the chat:", "Files to look at next:", "See also:"]
    )
    return exact(f"{brief.response()}\n{ask}\n\n{listed}")


@kind("a trailing bare list of paths", "talk")
def _bare_list(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return exact(
        f"{brief.response()}\nTo see more, I would need:\n\n- "
        + "\n- ".join(brief.task.before)
        + "\n"
    )


@kind("a placeholder path", "talk")
def _placeholder(brief: Brief) -> Rewrite | None:
    """A file's text under a prompt's own example writes nothing; a block or call that creates one
    says what it says, or is refused."""
    if not brief.form.in_text or not brief.form.creates:
        return None
    spot = brief.dice.choice(["path/to/file.py", "path/to/your/module.py", "your_file.py"])
    response = brief.response([Change(spot, None, "print('hello')\n")])
    if brief.form.family == "files":
        return refuse(response)
    return either(response, {**brief.task.before, spot: "print('hello')\n"})


@kind("a root twin of a file", "talk")
def _root_twin(brief: Brief) -> Rewrite | None:
    paths = [p for p in brief.task.before if "/" in p]
    names = [p.rpartition("/")[2] for p in brief.task.before]
    able = [p for p in paths if names.count(p.rpartition("/")[2]) == 1]
    if brief.form.name != "search_replace" or not able:
        return None
    path = brief.dice.choice(able)
    name = path.rpartition("/")[2]
    return refuse(f"{name}\n```{language(path)}\nprint('hello')\n```\n")


RUNS = (
    "pytest -q", "npm install", "mkdir -p build", "git commit -am done", "make test",
    "pytest > out.log", "python -m pip install -e .", "git status", "cat {}", "ls -la",
)  # fmt: skip
"""Commands that change no file of the tree; `{}` is a path of it."""
MOVES = (
    "rm {}", "git rm {}", "mv {} other.txt", "git mv {} other.txt", "sed -i s/a/b/ {}",
    "rm -f {}", "echo x > {}", "cat > {} <<'EOF'\nx\nEOF", "echo 1 | tee new_file.txt",
    "touch new_file.txt", "git apply fix.patch", "patch -p1 < fix.patch",
)  # fmt: skip
"""Commands that change, remove or write one."""


def _shell(brief: Brief, commands: Sequence[str]) -> str:
    """A fence with one of the commands."""
    path = brief.dice.choice(list(brief.task.before))
    command = brief.dice.choice(commands).replace("{}", path)
    info = brief.dice.choice(["bash", "sh", "shell", "console"])
    prompt = "$ " if info == "console" else ""
    return f"```{info}\n{prompt}{command}\n```\n"


@kind("commands that run", "shell")
def _runs(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    response = f"{brief.response()}\nThen run:\n\n{_shell(brief, RUNS)}"
    return either(response) if brief.ends_open else exact(response)


@kind("commands that change files", "shell")
def _moves(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    response = f"{brief.response()}\nThen run:\n\n{_shell(brief, MOVES)}"
    return refuse(response, losses=[brief.task.result()], extra=1)


@kind("an excerpt with a path comment alone", "talk")
def _commented(brief: Brief) -> Rewrite | None:
    if brief.form.name != "search_replace":
        return None
    path = brief.dice.choice(list(brief.task.before))
    sign = COMMENTS.get("." + path.rpartition(".")[2])
    if sign is None:
        return None
    lines = lines_of(brief.task.before[path])[:6]
    if not is_plain("".join(lines)) or len(lines_of(brief.task.before[path])) < 20:
        return None
    return refuse(
        f"It begins so:\n\n```{language(path)}\n{sign.format(path)}\n{''.join(lines)}```\n"
    )


@kind("two files, one of them by comment alone", "talk")
def _half_written(brief: Brief) -> Rewrite | None:
    if brief.form.name != "whole_file":
        return None
    text = f"{brief.response()}\nand\n\n```python\n# tools/extra.py\nprint('x')\n```\n"
    return refuse(text, losses=[brief.task.result()], extra=1)


IGNORED = {".gitignore": "*.log\nbuild/\n"}
for _name, _command in (
    ("a log", "echo started > run.log"),
    ("a file in an ignored folder", "mkdir -p build && touch build/stamp"),
):
    sample(f"a command that writes {_name} that git ignores", "shell", IGNORED,
           f"Then:\n\n```bash\n{_command}\n```\n", {})  # fmt: skip
for _name, _command in (
    ("a file by a heredoc", "cat > notes/new.txt <<'EOF'\nhello\nEOF"),
    ("a file by echo", "echo hello > notes/new.txt"),
    ("a file by tee", "echo hello | tee notes/new.txt"),
    ("an empty file", "touch notes/new.txt"),
    ("a file at the end of another", "echo hello >> notes/old.txt"),
):
    sample(f"a command that writes {_name}", "shell", {"notes/old.txt": "old\n"},
           f"Then:\n\n```bash\n{_command}\n```\n", None)  # fmt: skip
