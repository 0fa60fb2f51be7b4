"""What a client may read without calling a tool, and the prompts that it may put before a model.

patchq://status             how the queue stands, as JSON
patchq://reports/ID         a batch's report, as its page
patchq://formats/NAME       how to write that form
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from patchq.core.formats.registry import FORMATS
from patchq.gate.errors import UsageError
from patchq.mcp import arguments
from patchq.mcp.arguments import AnswerArguments, ReportArguments, StatusArguments
from patchq.mcp.tools import Tools

SCHEME = "patchq://"
STATUS = f"{SCHEME}status"
REPORT = f"{SCHEME}reports/"
FORMAT = f"{SCHEME}formats/"


class OfferedPrompt(Struct, frozen=True):
    """A prompt, with its arguments and what each is; the first one has to be given."""

    name: str
    description: str
    arguments: Mapping[str, str]


PROMPTS = (
    OfferedPrompt(
        "edit",
        "Ask for edits of files: the files, their base, and how to answer",
        {
            "files": "paths, with commas between them",
            "task": "what to do",
            "form": "auto, diff, edit-script, indexed, contextual or whole",
        },
    ),
    OfferedPrompt(
        "retry",
        "Ask for a refused response again, with what was wrong with it",
        {"id": "the batch that was refused"},
    ),
)


async def read(tools: Tools, uri: str) -> tuple[str, str]:
    """The text behind an address, and its type; `UsageError` if there is none."""
    if uri == STATUS:
        return (await tools.status(StatusArguments())).text, "application/json"
    if uri.startswith(REPORT):
        asked = arguments.parsed(ReportArguments, {"id": uri.removeprefix(REPORT)}, uri)
        return (await tools.report(asked)).text, "text/markdown"
    if uri.startswith(FORMAT) and (form := FORMATS.named(uri.removeprefix(FORMAT))):
        return form.instructions, "text/plain"
    raise UsageError(f"there is nothing at {uri!r}", f"see {STATUS}, {REPORT}ID, {FORMAT}NAME")


async def prompt(tools: Tools, name: str, given: Mapping[str, str]) -> str:
    """The text of a prompt; `UsageError` for one that there is not, or cannot be made."""
    offered = next((one for one in PROMPTS if one.name == name), None)
    if offered is None:
        names = ", ".join(one.name for one in PROMPTS)
        raise UsageError(f"there is no prompt {name!r}", f"one of {names}")
    if unknown := sorted(given.keys() - offered.arguments.keys()):
        takes = ", ".join(offered.arguments)
        raise UsageError(f"{name}: there is no argument `{unknown[0]}`", f"it takes {takes}")
    if name == "edit":
        files = [part for part in re.split(r"\s*,\s*", given.get("files", "").strip()) if part]
        asked = arguments.parsed(AnswerArguments, {**given, "files": files}, name)
        return (await tools.how_to_answer(asked)).text
    return await tools.retry_prompt(arguments.parsed(ReportArguments, given, name))
