"""What a fence's language tells of its text: shells, output, and the files that it may stand in."""

from __future__ import annotations

SHELLS = frozenset(
    (
        "bash", "sh", "shell", "zsh", "fish", "ksh", "console", "terminal", "session",
        "shell-session", "shellsession", "sh-session", "bash-session", "powershell", "pwsh", "ps1",
        "cmd", "bat", "batch", "dos",
    )
)  # fmt: skip
# The languages of fences that hold what people run, and what that prints.
_OUTPUTS = frozenset(("text", "txt", "plaintext", "console", "log", "output", "stdout", "stderr"))
_SHELL_ENDINGS = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".cmd", ".bat", ".command", ".profile")
_CODE_ENDINGS = (
    ".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs", ".rb", ".java",
    ".kt", ".kts", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".swift", ".php", ".scala", ".lua",
    ".pl", ".dart", ".vue", ".svelte", ".html", ".css", ".scss", ".sql", ".ex", ".exs", ".hs",
    ".ml", ".zig", ".jl", ".r", ".m", ".clj", ".erl", ".json", ".toml", ".yaml", ".yml", ".xml",
)  # fmt: skip
# Endings of a language's files, where they are not its name.
_ENDINGS = {
    "python": "py pyi", "javascript": "js mjs cjs", "typescript": "ts mts", "rust": "rs",
    "ruby": "rb", "golang": "go", "markdown": "md mdx", "yaml": "yml", "kotlin": "kt kts",
    "csharp": "cs", "c++": "cpp cc hpp h", "cpp": "cc hpp h cxx", "c": "h", "perl": "pl pm",
    "haskell": "hs", "elixir": "ex exs", "bash": "sh", "shell": "sh", "html": "htm",
    "objective-c": "m h", "text": "txt", "julia": "jl", "clojure": "clj", "terraform": "tf",
}  # fmt: skip


def named_fence(path: str) -> str:
    """Return the line that opens a fence which writes the file of that path."""
    ending = path.rpartition("/")[2].partition(".")[2].rpartition(".")[2]
    return f"```{ending if ending.isalnum() else 'text'}:{path}"


def language_of(info: str) -> str:
    """Return the language that a fence's info begins with, in lower case."""
    return info.partition(":")[0].split(" ")[0].lower()


def may_hold(language: str, path: str) -> bool:
    """Return whether a file of that name may hold the text of a fence in the language.

    A shell's lines and what programs print are no code.
    """
    name = path.rpartition("/")[2].lower()
    if language in SHELLS and language not in _OUTPUTS:
        return name.endswith(_SHELL_ENDINGS) or "." not in name.lstrip(".")
    return language not in _OUTPUTS or not name.endswith(_CODE_ENDINGS)


def is_ending(language: str, ending: str) -> bool:
    """Return whether files in the language end so."""
    return ending in (language, *_ENDINGS.get(language, "").split())
