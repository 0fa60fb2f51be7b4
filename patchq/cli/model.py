"""Questions to models: `prompt`, `ask`, `anchors` and `formats`."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from msgspec.structs import asdict

from patchq.cli import arguments, output
from patchq.cli.arguments import Argument, Table, positive
from patchq.core.formats.registry import FORMATS
from patchq.core.model.names import REQUEST, batch_id
from patchq.core.resolve.anchors import ranked
from patchq.gate.errors import UsageError
from patchq.gate.report.document import printed
from patchq.llm import prompts, request
from patchq.llm.prompts import FORMS
from patchq.llm.request import Request, RequestedFile

# ---------------------------------------------------------------- prompt


# Arguments that describe the request.
_REQUEST = (
    Argument("files", metavar="FILE", nargs="+", help="to change, or to create"),
    Argument("--task", metavar="TEXT", required=True, help="what to do"),
    Argument("--form", choices=FORMS, default="auto", help="how to answer"),
    Argument(
        "--line", metavar="[FILE:]N", action="append", default=[], help="where the change is to be"
    ),
    Argument("--test", metavar="FILE", action="append", default=[], help="to show, too"),
    Argument("--target", metavar="B", help="the branch that the change is for"),
    Argument("--base", metavar="C", help="show the files as of this commit"),
)
ARGUMENTS: Table = {
    "prompt": (
        *_REQUEST,
        Argument(
            "--budget",
            metavar="N",
            type=positive,
            default=prompts.BUDGET,
            help="characters of files to show",
        ),
    ),
    "ask": (
        *_REQUEST,
        Argument("--mode", choices=("review", "auto"), help="`review` applies nothing unseen"),
    ),
    "anchors": (
        Argument("file", metavar="FILE"),
        Argument(
            "--line", metavar="N", type=arguments.positive, help="rank lines near this one higher"
        ),
    ),
    "formats": (Argument("name", metavar="NAME", nargs="?"),),
}


def prompt(args: Namespace) -> int:
    gate = output.gate(args)
    task = gate.task(question(args, gate.location.repo.workdir))
    prompt = prompts.build(task, budget=args.budget)
    return output.emit(
        args,
        {"form": prompt.form, "base": task.base, "prompt": prompt.text},
        prompt.text.removesuffix("\n"),
    )


def question(args: Namespace, workdir: Path | None) -> Request:
    """Return the request for a model.

    Paths are relative to the directory in which the command was called.
    """
    if not args.task.strip():
        raise UsageError("--task: expected text, got nothing", "say what to do")
    files = [_path(name, args, workdir) for name in args.files]
    lines: dict[str, int] = {}
    for place in args.line:
        name, _, number = place.rpartition(":")
        if not number.isascii() or not number.isdigit() or int(number) < 1:
            raise UsageError(f"--line {place}: expected FILE:N", "N is a line from 1")
        if not name and len(files) > 1:
            raise UsageError(f"--line {place}: which file?", "say FILE:N")
        path = _path(name, args, workdir) if name else files[0]
        if path not in files:
            raise UsageError(f"--line {place}: {name} is not one of the files", "name it as a FILE")
        lines[path] = int(number)
    return Request(
        files=tuple(
            RequestedFile(path=path, line=lines.get(path)) for path in dict.fromkeys(files)
        ),
        task=args.task,
        form=args.form,
        mode=getattr(args, "mode", None),
        target=args.target,
        base=args.base,
        tests=tuple(_path(name, args, workdir) for name in args.test),
    )


def _path(name: str, args: Namespace, workdir: Path | None) -> str:
    """Return a file's path relative to the repository's root.

    A path outside of the work tree stays as it is.
    """
    where = Path(os.path.abspath(Path(os.path.realpath(args.directory), name)))
    if workdir is None or not where.is_relative_to(workdir):
        return name
    return where.relative_to(workdir).as_posix()


# ---------------------------------------------------------------- ask


_LONGEST_NAME = 40


def ask(args: Namespace) -> int:
    gate = output.gate(args)
    asked = request.write(question(args, gate.location.repo.workdir))
    name = batch_id(args.task)[:_LONGEST_NAME].strip(".-_") or "ask"
    verdicts = output.Verdicts(args)
    gate.ask(asked, name + REQUEST, verdicts)
    return int(verdicts.states[-1:] == ["rejected"])


# ---------------------------------------------------------------- anchors


def anchors(args: Namespace) -> int:
    data, _ = arguments.read_response(args.file)
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    candidates = [asdict(candidate) for candidate in ranked(args.file, text, args.line)]
    print(printed(candidates, indent=1))
    return 0


# ---------------------------------------------------------------- formats


def formats(args: Namespace) -> int:
    if args.name is None:
        return output.emit(args, list(FORMATS), *FORMATS)
    form = FORMATS[arguments.known("format", args.name, FORMATS)]
    answer = {"name": form.name, "instructions": form.instructions}
    return output.emit(args, answer, form.instructions.rstrip())
