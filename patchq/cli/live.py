"""Progress on a terminal while work goes on; never used in a pipe."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from patchq.gate.service.upkeep import Upkeep


class Bar:
    """A progress bar for a `run` over many responses; verdicts scroll above it."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("responses"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        )
        self._task = self._progress.add_task("run", total=None)
        self._progress.start()
        self.close = self._progress.stop

    def tell(self, line: str) -> None:
        self._progress.console.print(Text(line), soft_wrap=True)
        self._progress.advance(self._task)

    def refresh(self, upkeep: Upkeep) -> None:
        done = self._progress.tasks[0].completed
        self._progress.update(self._task, total=done + upkeep.session.queue.depth())


class LiveLine:
    """One line at the bottom of `watch`; verdicts scroll above it."""

    def __init__(self) -> None:
        self._line = ""
        self._live = Live(Text(""), console=Console(), auto_refresh=False, transient=True)
        self._live.start()
        self.close = self._live.stop

    def tell(self, line: str) -> None:
        self._live.console.print(Text(line), soft_wrap=True)

    def refresh(self, upkeep: Upkeep) -> None:
        """Put the line in the place of the one before, cut to the terminal's width."""
        session = upkeep.session
        place = f"{session.config.queue.path}/inbox"
        line = f"watching {place} for {session.target}: {upkeep.summary or '…'}"
        if line != self._line:
            self._line = line
            text = Text(line, style="dim", no_wrap=True, overflow="ellipsis")
            self._live.update(text, refresh=True)
