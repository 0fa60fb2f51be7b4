"""The man page, made from the parser: `python -m tests.helpers.manpage` writes it anew."""

from __future__ import annotations

import os
import re
from typing import Any

from argparse_manpage.manpage import Manpage

from patchq.cli import command
from tests.helpers.pages import ROOT

PATH = ROOT / "contrib/man/patchq.1"


def made() -> str:
    """The page, without date and version, so that it changes with the parser alone."""
    os.environ["COLUMNS"] = "90"
    parser: Any = command.whole()
    parser.man_short_description = "the gate between LLM agents and git branches"
    page = Manpage(parser, format="single-commands-section")
    page.manual = "patchq"
    text = str(page)
    return re.sub(r"^\.TH .*$", '.TH PATCHQ 1 "" "patchq" "patchq"', text, flags=re.M)


if __name__ == "__main__":
    PATH.write_text(made(), encoding="utf-8")
