"""What is near to another kind, clear today, and to stay so."""

from __future__ import annotations

from bench.corpus.rewrites.forms import language
from bench.corpus.rewrites.registry import Brief, Rewrite, exact, kind
from bench.corpus.rewrites.tasks import Change


@kind("near: fence of four under its path", "neighbours")
def _four(brief: Brief) -> Rewrite | None:
    if brief.form.name != "search_replace":
        return None
    parts = []
    for c in brief.changes:
        path, _, block = brief.response([c]).partition("\n")
        parts.append(f"{path}\n````{language(c.path)}\n{block}````\n")
    return exact("\n".join(parts))


@kind("near: info with the path over a block", "neighbours")
def _info_block(brief: Brief) -> Rewrite | None:
    if brief.form.name != "search_replace":
        return None
    colon = brief.dice.choice([":", " "])
    parts = []
    for c in brief.changes:
        block = brief.response([c]).partition("\n")[2]
        parts.append(f"```{language(c.path)}{colon}{c.path}\n{block}```\n")
    return exact("\n".join(parts))


@kind("near: details", "neighbours")
def _details(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    aside = "<details>\n<summary>Why</summary>\n\nIt was asked for.\n\n</details>\n"
    return exact(f"{aside}\n{brief.response()}")


@kind("near: a readme in a new folder", "neighbours")
def _readme(brief: Brief) -> Rewrite | None:
    if not brief.form.creates or brief.form.family == "files":
        return None
    creation = Change("examples/new-thing/README.md", None, "# A new thing\n\nSome words.\n")
    after = {**brief.task.result(), creation.path: creation.new or ""}
    if not brief.form.expresses(creation):
        return None
    return exact(brief.response([*brief.changes, creation]), after)


@kind("near: a command in prose", "neighbours")
def _command_prose(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return exact(f"Run `rm -rf build` first if you like, then `pytest`.\n\n{brief.response()}")


@kind("near: a tag named in prose", "neighbours")
def _inline_tag(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return exact(
        f"The `<draft>` tag is not needed. I <b>changed</b> what was asked.\n\n{brief.response()}"
    )


@kind("near: a whole file whose path a sentence names too", "neighbours")
def _info_path(brief: Brief) -> Rewrite | None:
    if brief.form.name != "whole_file":
        return None
    return exact(
        "\n".join(
            f"Here is `{c.path}`:\n\n````{language(c.path)}:{c.path}\n{c.new}````\n"
            for c in brief.changes
        )
    )
