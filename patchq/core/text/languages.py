"""Suffixes of plain source: languages whose files no tool runs just because they are there.

Scripts of shells, languages of builds, and data are left out, as tools look for such files.
"""

_SOURCE = """
ada adb ads asm astro c cc cjs clj cljc cljs cob coffee cpp cr cs css cts cu cuh cxx d dart ejs el
elm erb erl ex exs f f90 f95 frag fs fsi gd glsl go gql graphql h haml hbs hh hlsl hpp hrl hs htm
html hx hxx java jinja jinja2 jl js jsx kt less lhs liquid lisp lua m mdx metal mjs ml mli mm mts
mustache nim pas php pl pm proto pug purs pxd py pyi pyx r rb rkt rs s sass scala scm scss slim
sol sql styl sv svelte svh swift ts tsx twig vb vert vhd vhdl vue wgsl zig
"""
SOURCE = frozenset(_SOURCE.split())


def suffix(name: str) -> str:
    """The ending of a file's name behind its last dot, in lower case; "" without a dot."""
    _, dot, ending = name.rpartition(".")
    return ending.lower() if dot else ""
