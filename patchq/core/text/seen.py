"""What a text in a fence is, as far as its language and its lines tell: for hints, and to tell what
people run and get from what they write into files."""

from __future__ import annotations

from patchq.core.text.patterns import Pattern

SHELLS = frozenset(
    (
        "bash", "sh", "shell", "zsh", "fish", "console", "terminal", "shell-session",
        "shellsession", "sh-session", "powershell", "pwsh", "ps1", "cmd", "bat", "batch", "dos",
    )
)  # fmt: skip
OUTPUTS = frozenset(("text", "txt", "plaintext", "console", "log", "output", "stdout", "stderr"))
"""The languages of fences that hold what people run, and what that prints."""
_SHELL_ENDINGS = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".cmd", ".bat", ".command", ".profile")
_CODE_ENDINGS = (
    ".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs", ".rb", ".java",
    ".kt", ".kts", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".swift", ".php", ".scala", ".lua",
    ".pl", ".dart", ".vue", ".svelte", ".html", ".css", ".scss", ".sql", ".ex", ".exs", ".hs",
    ".ml", ".zig", ".jl", ".r", ".m", ".clj", ".erl", ".json", ".toml", ".yaml", ".yml", ".xml",
)  # fmt: skip
_PROMPT = Pattern(r"(?:\(\w+\) )?(?:[$%>\u276f] |PS [A-Z]:|[\w.-]+@[\w.-]+[:~ ].*[$#] )\S")
_RUN = Pattern(
    r"(?:sudo |env )?(?:python3?|pip3?|pytest|npm|npx|yarn|pnpm|node|git|cd|ls|cat|mkdir|make|cargo"
    r"|go (?:run|build|test|get|mod)|docker|curl|wget|brew|apt(?:-get)?|uv|poetry|tox|ruff|mypy"
    r"|bundle|gem|rake|mvn|gradle|dotnet|bash|sh|source|export|chmod|grep|rg|\./\S+)(?:\s|$)"
)
_TRACE = Pattern(
    r"Traceback \(most recent call last\)|\s+at .+[(:]\S+:\d+|\s*File \".+\", line \d+|panic: |"
    r"thread '.*' panicked|Exception in thread|(?:[\w.]+(?:Error|Exception))\b.*:"
)
_LOGGED = Pattern(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR)\b"
    r"|=+ .* =+$|(?:FAILED|PASSED|ok|not ok|---) \S"
)
_LISTED = Pattern(r"\s*(?:[│├└|]|[d-][rwx-]{9}\b|total \d+$|\S+/$)")


def named_fence(path: str) -> str:
    """How the fence opens that writes the file of that path."""
    ending = path.rpartition("/")[2].partition(".")[2].rpartition(".")[2]
    return f"```{ending if ending.isalnum() else 'text'}:{path}"


def fits(language: str, path: str) -> bool:
    """Whether a file of that name may hold the text of a fence of that language: not where the
    fence says that people run it, or that something prints it, and the file is code."""
    language, name = language.lower(), path.rpartition("/")[2].lower()
    if language in SHELLS and language not in OUTPUTS:
        return name.endswith(_SHELL_ENDINGS) or "." not in name.lstrip(".")
    return language not in OUTPUTS or not name.endswith(_CODE_ENDINGS)


def is_session(text: str, path: str) -> bool:
    """Whether the text shows how a script is run, and is none: its first line has a prompt."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    return path.lower().endswith(_SHELL_ENDINGS) and _PROMPT.match(first) is not None


def seen(text: str, language: str = "") -> str | None:
    """What the text is, if it is plainly no file's: a command, a log, a listing, a traceback."""
    lines = [line for line in text.split("\n") if line.strip()][:40]
    language = language.lower()
    if any(_TRACE.match(line) for line in lines[:2]) and language not in SHELLS - OUTPUTS:
        return "a traceback"
    if lines and _PROMPT.match(lines[0]):
        return "a command"
    if lines and sum(_LISTED.match(line) is not None for line in lines) * 2 > len(lines):
        return "a listing"
    if lines and all(_RUN.match(line) or line.startswith("#") for line in lines):
        return "a command"
    if lines and sum(_LOGGED.match(line) is not None for line in lines) * 2 > len(lines):
        return "a log"
    if language in SHELLS:
        return "a command"
    return "output" if language in OUTPUTS - {"text", "txt", "plaintext"} else None
