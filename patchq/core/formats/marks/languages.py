"""The names by which a fence's info calls the language of its text, where they look like paths.

A name without a dot and a slash is no path anyway.  Those with one are: names with a dot of their
own, with a version behind (`python3.11`), several at once (`html/css`), and media types.
"""

from __future__ import annotations

import re

from patchq.core.text.languages import SOURCE

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
_MEDIA_TYPE = re.compile(r"(?:application|image|text)/(?:vnd\.[\w.+-]+|[\w+-]+)")


def is_language(info: str) -> bool:
    """Whether the word in a fence's info is the name of a language, or of several."""
    word = info.lower()
    if word in _DOTTED or _MEDIA_TYPE.fullmatch(word):
        return True
    return all(part in _NAMES or _VERSION.sub("", part) in _NAMES for part in word.split("/"))
