"""The names by which a fence's info calls the language of its text, where they look like paths.

A name without a dot and a slash is no path anyway.  Those with one are: names with a dot of their
own, with a version behind (`python3.11`), several at once (`html/css`), and media types.
"""

from __future__ import annotations

from patchq.core.text.patterns import Pattern

_WORDS = """
ada apex applescript asciidoc asm assembly astro awk bash basic bat batch blade c c# c++ cc cfg
clj clojure cmake cmd cobol coffee coffeescript console cpp crystal cs csharp css csv cuda curl d
dart diff django docker dockerfile dotenv dotnet ejs elixir elm env erb erlang ex f# fish fortran
fs fsharp gdscript gherkin git gitignore glsl go golang gradle graphql groovy h haml handlebars
haskell haxe hbs hcl hlsl hs html html5 htm http ini java javascript jinja jinja2 js json json5
jsonc jsonl jsonnet jsx julia kotlin kt kts latex less liquid lisp log lua make makefile markdown
matlab md mdx mermaid mips mysql nginx nim nix none node nodejs objc objective-c objective-c++
ocaml octave output pascal patch perl php pl plain plaintext plpgsql plsql postgres postgresql
powershell prisma prolog properties proto protobuf ps1 pseudo pseudocode pug puppet py python
python3 pwsh qml r racket rb react reason rest rs rst ruby rust sas sass scala scheme scss sh
shell sol solidity sql sqlite stylus svelte svg swift systemverilog tcl terminal terraform tex
text tf toml ts tsql tsx twig txt typescript unix v vb vba verilog vhdl vim vue wasm wat
webassembly xhtml xml xsd xslt yaml yml zig zsh
"""
_DOTTED_WORDS = """
asp.net ado.net vb.net c#.net f#.net .net html.erb html.eex html.heex html.twig html.jinja2
html.j2 html.haml html.leex blade.php node.js vue.js react.js next.js nuxt.js angular.js three.js
d3.js express.js backbone.js ember.js p5.js jquery.js svelte.js
"""
_NAMES, _DOTTED = frozenset(_WORDS.split()), frozenset(_DOTTED_WORDS.split())
_VERSION = Pattern(r"[ @-]?v?\d+(?:\.\d+)*\Z")
_MEDIA_TYPE = Pattern(r"(?:application|image|text)/(?:vnd\.[\w.+-]+|[\w+-]+)")


def is_language(info: str) -> bool:
    """Whether the word in a fence's info is the name of a language, or of several."""
    word = info.lower()
    if word in _DOTTED or _MEDIA_TYPE.fullmatch(word):
        return True
    return all(part in _NAMES or _VERSION.sub("", part) in _NAMES for part in word.split("/"))
