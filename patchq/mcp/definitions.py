"""What the tools are called, what a model is told of them, and what a client may think of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from patchq.mcp import arguments
from patchq.mcp.arguments import Arguments, PromptAnswer, StatusAnswer, VerdictAnswer
from patchq.mcp.tools import ToolAnswer, Tools

INSTRUCTIONS = """\
patchq turns edits into one reviewed commit, or refuses them and says why; it never applies a part \
of them. Ask `how_to_answer` for the files with their base, or read them yourself and give the \
commit that you read as `base`. `check` tells at no cost what would become of your edits, and \
`submit` hands them in. A refusal holds the file's real lines: correct the edits by them, and \
submit again with `retries` set to the refused id. `proposed` is a success: a person reviews it."""


class Definition(Struct, frozen=True):
    """One tool."""

    name: str
    title: str
    description: str
    takes: type[Arguments]
    gives: Any
    call: Callable[[Tools, Any], Awaitable[ToolAnswer]]
    reads: bool = True
    """Whether it changes nothing."""
    destroys: bool = False
    repeats: bool = True
    """Whether a second call of the same changes no more than the first."""

    def input_schema(self) -> Mapping[str, Any]:
        return arguments.schema(self.takes)

    def output_schema(self) -> Mapping[str, Any]:
        return arguments.schema(self.gives)


DEFINITIONS = (
    Definition(
        "submit",
        "Submit edits",
        "Hand in edits, all of which become one commit or none, and wait for the verdict. Give "
        "`edits`, or a whole `response`. Keep the `token` to withdraw it. The same call twice "
        "changes nothing more.",
        arguments.SubmitArguments,
        VerdictAnswer,
        Tools.submit,
        reads=False,
    ),
    Definition(
        "check",
        "Check edits",
        "What would become of edits now, without handing them in: each one's place or why it has "
        "none, what it collides with, whether the result parses, what a person would have to "
        "review. Hooks are not run.",
        arguments.CheckArguments,
        VerdictAnswer,
        Tools.check,
    ),
    Definition(
        "report",
        "Read a report",
        "The verdict on a batch and, where it was refused, what to send instead.",
        arguments.ReportArguments,
        VerdictAnswer,
        Tools.report,
    ),
    Definition(
        "status",
        "See the queue",
        "Whether a daemon runs, and the batches that wait or are held; with `state`, those of "
        "that state, the newest first.",
        arguments.StatusArguments,
        StatusAnswer,
        Tools.status,
    ),
    Definition(
        "wait",
        "Wait for a change",
        "Wait until a batch has a verdict or, with `known`, another state than that.",
        arguments.WaitArguments,
        VerdictAnswer,
        Tools.wait,
    ),
    Definition(
        "how_to_answer",
        "Get files and format",
        "The files as they are, their base commit, and the exact form in which to write edits of "
        "them.",
        arguments.AnswerArguments,
        PromptAnswer,
        Tools.how_to_answer,
    ),
    Definition(
        "withdraw",
        "Withdraw a batch",
        "Take back a batch that you submitted and that waits or is held.",
        arguments.WithdrawArguments,
        VerdictAnswer,
        Tools.withdraw,
        reads=False,
        destroys=True,
        repeats=False,
    ),
)
