"""What stands round the edits: thinking, tags, fences, answers of APIs, and ends that are cut."""

from __future__ import annotations

import json
from dataclasses import replace

from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.registry import Brief, Rewrite, exact, kind, refuse
from bench.corpus.rewrites.tasks import Change, lines_of

THOUGHTS = (
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<Think>", "</Think>"),
    ("<thought>", "</thought>"), ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"), ("<scratchpad>", "</scratchpad>"),
    ("<analysis>", "</analysis>"), ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"),
    ("<THINKING>", "</THINKING>"), ("<my-think>", "</my-think>"),
)  # fmt: skip


def other_result(brief: Brief) -> str | None:
    """A draft: the same edits with another result."""
    able = brief.replacements()
    if not able:
        return None
    c = able[0]
    assert c.new is not None
    lines = lines_of(c.new)
    return brief.response([replace(c, new="".join(lines[:-1]) + "draft_line = 0\n")])


@kind("thinking: words", "wrappers")
def _thinking(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    opens, closes = brief.dice.choice(THOUGHTS)
    return exact(f"{opens}\nThe user wants a change. I look at it.\n{closes}\n\n{brief.response()}")


@kind("thinking: a draft", "wrappers")
def _draft(brief: Brief) -> Rewrite | None:
    draft = other_result(brief) if brief.form.in_text else None
    if draft is None:
        return None
    opens, closes = brief.dice.choice(THOUGHTS)
    return exact(f"{opens}\nFirst idea:\n\n{draft}\nNo, better:\n{closes}\n\n{brief.response()}")


@kind("thinking: channels", "wrappers")
def _channel(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    draft = other_result(brief) or "words\n"
    return exact(
        f"<|channel|>analysis<|message|>I think.\n{draft}<|end|><|start|>assistant<|channel|>final"
        f"<|message|>\n{brief.response()}"
    )


@kind("thinking: closed only", "wrappers")
def _closed(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    closes = brief.dice.choice(THOUGHTS)[1]
    draft = other_result(brief) or "words\n"
    return refuse(f"I think.\n\n{draft}\n{closes}\n\n{brief.response()}")


@kind("thinking: open to the end", "wrappers")
def _open(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return refuse(f"{brief.dice.choice(THOUGHTS)[0]}\nI think.\n\n{brief.response()}")


@kind("tags: known", "wrappers")
def _tags(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    tag = brief.dice.choice(["answer", "edits", "changes", "response", "details"])
    summary = "<summary>The change</summary>\n" if tag == "details" else ""
    return exact(f"Here it is:\n\n<{tag}>\n{summary}\n{brief.response()}\n</{tag}>\n")


@kind("tags: unknown draft beside edits", "wrappers")
def _unknown_tag(brief: Brief) -> Rewrite | None:
    draft = other_result(brief) if brief.form.in_text else None
    if draft is None or len(brief.changes) < 1:
        return None
    tag = brief.dice.choice(["draft", "attempt", "old_version", "rejected", "option-a", "plan"])
    return refuse(f"<{tag}>\n{draft}</{tag}>\n\n{brief.response()}")


@kind("fence round all", "wrappers")
def _outer(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text or brief.form.family == "files":
        return None
    info = brief.dice.choice(["", "text", "markdown"])
    return exact(f"``````{info}\n{brief.response()}``````\n")


@kind("byte order mark", "wrappers")
def _bom(brief: Brief) -> Rewrite | None:
    return exact("\ufeff" + brief.response())


@kind("CRLF", "wrappers")
def _crlf(brief: Brief) -> Rewrite | None:
    if brief.form.family == "files" or any(c.old is None for c in brief.changes):
        return None
    return exact(brief.response().replace("\n", "\r\n"))


@kind("prose before and after", "wrappers")
def _prose(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    tail = "That is all. Run the tests, please.\n"
    return exact(f"I changed what you asked for.\n\n{brief.response()}\n{tail}")


@kind("Messages answer", "wrappers")
def _messages_text(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    text = f"I change it.\n\n{brief.response()}"
    value = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
             "stop_reason": "end_turn"}  # fmt: skip
    return exact(json.dumps(value))


@kind("Chat Completions answer", "wrappers")
def _chat_text(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    message = {"role": "assistant", "content": f"I change it.\n\n{brief.response()}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return exact(json.dumps({"object": "chat.completion", "choices": [choice]}))


@kind("cut answer", "wrappers")
def _cut_answer(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    message = {"role": "assistant", "content": f"I change it.\n\n{brief.response()}"}
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    return refuse(json.dumps({"object": "chat.completion", "choices": [choice]}))


@kind("cut at random", "wrappers")
def _cut(brief: Brief) -> Rewrite | None:
    text = brief.response()
    if brief.form.family not in {"blocks", "calls", "json", "api", "find"}:
        return None
    if brief.form.name == "json_lines":
        return None
    last = text.rstrip().rfind("\n")
    low = max(len(text) // 3, 1)
    if brief.form.family in {"blocks", "find"}:
        whole = brief.response(brief.changes[:-1]) if len(brief.changes) > 1 else ""
        low, last = len(whole) + len(brief.changes[-1].path) + 22, len(text.rstrip()) - 9
    else:
        last = len(text.rstrip()) - 1
    if low >= last:
        return None
    return refuse(text[: brief.dice.randrange(low, last)])


@kind("thinking: twice", "wrappers")
def _twice(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    (one, end_one), (two, end_two) = brief.dice.sample(THOUGHTS, 2)
    first = f"{one}\nLet me see.\n{end_one}\n\nSo:\n\n"
    return exact(f"{first}{two}\nYes.\n{end_two}\n\n{brief.response()}")


@kind("thinking: any prefix and case", "wrappers")
def _prefixed(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    lead = brief.dice.choice(["", "seed:", "model-", "x1:", "my-", "antml:"])
    word = brief.dice.choice(
        ["think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis"]
    )
    word = lead + word
    name = brief.dice.choice([word, word.upper(), word.title()])
    draft = other_result(brief) or "words\n"
    return exact(f"<{name}>\n{draft}\n</{name}>\n\n{brief.response()}")


@kind("thinking: after front matter", "wrappers")
def _after_front(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return exact(f"---\nagent: x\n---\n<think>\nI look.\n</think>\n\n{brief.response()}")


@kind("thinking: in an answer of an API", "wrappers")
def _in_answer(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    draft = other_result(brief) or "words\n"
    content = f"<think>\n{draft}</think>\n\n{brief.response()}"
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return exact(json.dumps({"object": "chat.completion", "choices": [choice]}))


@kind("fence of tildes round all", "wrappers")
def _tildes(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text or brief.form.family == "files":
        return None
    return exact(f"~~~~~~\n{brief.response()}~~~~~~\n")


@kind("byte order mark before front matter", "wrappers")
def _bom_front(brief: Brief) -> Rewrite | None:
    return exact(f"\ufeff---\nagent: x\n---\n{brief.response()}")


HELD = (
    "Some models write\n\n<think>\nso\n</think>\n\nand go on.\n",
    "Only the end:\n</think>\nof it.\n",
    "Words.\n\n---\ntarget: elsewhere\nagent: x\n---\n\nMore words.\n",
    'A call: {"file_path": "x.py", "old_string": "a", "new_string": "b"} and more.\n',
    "<draft>\nThis is none.\n</draft>\n",
    "Run `rm -rf x`:\n\n    rm README.md\n",
)
"""Texts that would be something else outside a file."""


@kind("a file that holds what looks like an envelope", "documents")
def _holds(brief: Brief) -> Rewrite | None:
    creation = Change("notes/held.md", None, brief.dice.choice(HELD))
    if not brief.form.expresses(creation) or brief.form.name == "file_marker":
        return None
    after = {**brief.task.result(), creation.path: creation.new or ""}
    return exact(brief.response([*brief.changes, creation]), after)


@kind("a file that shows edits of another form", "documents")
def _shows(brief: Brief) -> Rewrite | None:
    """A form's own signs in a text would put its end in doubt; those of another do not."""
    if brief.form.family not in {"calls", "api", "patch", "mail"} or not brief.form.creates:
        return None
    text = "# How to\n\n```\nsrc/a.py\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```\n"
    creation = Change("notes/how-to.md", None, text)
    after = {**brief.task.result(), creation.path: text}
    return exact(brief.response([*brief.changes, creation]), after)


@kind("tags: one unknown pair round everything", "wrappers")
def _lone_tag(brief: Brief) -> Rewrite | None:
    """Nothing stands outside, so nothing else can be meant."""
    if not brief.form.in_text or brief.form.family == "files":
        return None
    tag = brief.dice.choice(["patch", "output", "result", "diff", "my-edit"])
    return exact(f"<{tag}>\n{brief.response()}</{tag}>\n")


sample("cut: a path and an open fence", "wrappers", {}, "notes/new.txt\n```text\none\ntwo\n", None,
       apart_from={"files"})  # fmt: skip
sample("cut: an open block", "wrappers", {"notes/a.txt": "one\n"},
       "notes/a.txt\n<<<<<<< SEARCH\none\n=======\ntw", None)  # fmt: skip
