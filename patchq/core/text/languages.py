"""Languages: the suffixes of their files, and their names on fences."""

from __future__ import annotations

import re

# Suffixes of plain source: no tool runs such a file just because it is there.  Scripts of shells,
# languages of builds, and data are left out, as tools look for such files.
_SOURCE = """
ada adb ads asm astro c cc cjs clj cljc cljs cob coffee cpp cr cs css cts cu cuh cxx d dart ejs el
elm erb erl ex exs f f90 f95 frag fs fsi gd glsl go gql graphql h haml hbs hh hlsl hpp hrl hs htm
html hx hxx java jinja jinja2 jl js jsx kt less lhs liquid lisp lua m mdx metal mjs ml mli mm mts
mustache nim pas php pl pm proto pug purs pxd py pyi pyx r rb rkt rs s sass scala scm scss slim
sol sql styl sv svelte svh swift ts tsx twig vb vert vhd vhdl vue wgsl zig
"""
SOURCE = frozenset(_SOURCE.split())
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
# Names of languages in a fence's info that look like paths: those with a dot of their own, with a
# version behind (`python3.11`), several at once (`html/css`), and media types.
_WORDS = """
apex applescript asciidoc assembly awk bash basic bat batch blade c# c++ cfg clojure cmake cmd
cobol coffeescript console crystal csharp csv cuda curl diff django docker dockerfile dotenv
dotnet elixir env erlang f# fish fortran fsharp gdscript gherkin git gitignore golang gradle
groovy handlebars haskell haxe hcl html5 http ini javascript json json5 jsonc jsonl jsonnet julia
kotlin kts latex log make makefile markdown matlab md mermaid mips mysql nginx nix none node
nodejs objc objective-c objective-c++ ocaml octave output pascal patch perl plain plaintext
plpgsql plsql postgres postgresql powershell prisma prolog properties protobuf ps1 pseudo
pseudocode puppet python python3 pwsh qml racket react reason rest rst ruby rust sas scheme sh
shell solidity sqlite stylus svg systemverilog tcl terminal terraform tex text tf toml tsql txt
typescript unix v vba verilog vim wasm wat webassembly xhtml xml xsd xslt yaml yml zsh
"""
_DOTTED_WORDS = """
asp.net ado.net vb.net c#.net f#.net .net html.erb html.eex html.heex html.twig html.jinja2
html.j2 html.haml html.leex blade.php node.js vue.js react.js next.js nuxt.js angular.js three.js
d3.js express.js backbone.js ember.js p5.js jquery.js svelte.js
"""
_NAMES, _DOTTED = SOURCE.union(_WORDS.split()), frozenset(_DOTTED_WORDS.split())
_VERSION = re.compile(r"[ @-]?v?\d+(?:\.\d+)*\Z")
_DOCUMENTS = frozenset(("md", "markdown", "mdx", "rst", "txt", "text", "adoc", "asciidoc", "org"))
_MEDIA_TYPE = re.compile(r"(?:application|image|text)/(?:vnd\.[\w.+-]+|[\w+-]+)")


def is_language(info: str) -> bool:
    """Return whether the word in a fence's info names a language, or several."""
    word = info.lower()
    if word in _DOTTED or _MEDIA_TYPE.fullmatch(word):
        return True
    return all(part in _NAMES or _VERSION.sub("", part) in _NAMES for part in word.split("/"))


def suffix(name: str) -> str:
    """Return the suffix of a file's name in lower case, or ""."""
    _, dot, ending = name.rpartition(".")
    return ending.lower() if dot else ""


def named_fence(path: str) -> str:
    """Return the line that opens a fence which writes the file of that path."""
    ending = path.rpartition("/")[2].partition(".")[2].rpartition(".")[2]
    return f"```{ending if ending.isalnum() else 'text'}:{path}"


def is_document(path: str) -> bool:
    """Return whether the file is Markdown or plain text.

    Such a file may show code and edits.
    """
    name = path.rpartition("/")[2]
    return suffix(name) in _DOCUMENTS if "." in name else name.isupper()


def language_of(info: str) -> str:
    """Return the language that a fence's info begins with, in lower case."""
    return info.partition(":")[0].split(" ")[0].lower()


def may_hold(language: str, path: str) -> bool:
    """Return whether a file of that name may hold text in a language.

    The language is that of a fence.  A shell's lines and what programs print are no code.
    """
    name = path.rpartition("/")[2].lower()
    if language in SHELLS and language not in _OUTPUTS:
        return name.endswith(_SHELL_ENDINGS) or "." not in name.lstrip(".")
    return language not in _OUTPUTS or not name.endswith(_CODE_ENDINGS)


def is_ending(language: str, ending: str) -> bool:
    """Return whether files in the language end so."""
    return ending in (language, *_ENDINGS.get(language, "").split())
