"""`patchq anchors`: ranked anchor candidates of a file, as JSON."""

from __future__ import annotations

from argparse import Namespace

from msgspec.structs import asdict

from patchq.cli import arguments
from patchq.core.resolve.anchors import ranked
from patchq.gate.report.document import printed

ARGUMENTS = (
    arguments.Argument("file", metavar="FILE"),
    arguments.Argument(
        "--line", metavar="N", type=arguments.positive, help="rank lines near this one higher"
    ),
)


def run(args: Namespace) -> int:
    data, _ = arguments.read_response(args.file)
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    candidates = [asdict(candidate) for candidate in ranked(args.file, text, args.line)]
    print(printed(candidates, indent=1))
    return 0
