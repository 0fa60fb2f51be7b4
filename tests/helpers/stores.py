"""The SQL store of a queue, read and changed behind patchq's back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any


def sql(root: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement on the store of the queue at `root`; return its rows."""
    with closing(sqlite3.connect(root / "store.db", isolation_level=None)) as database:
        return database.execute(statement, values).fetchall()


def unpublish(root: Path, id: str) -> None:
    """Put the queue back to where it stood when the ref of a batch had just moved."""
    ((number, token, name),) = sql(
        root, "select number, token, name from responses where id = ?", id
    )
    (body,) = (path for path in root.glob(f"*/{id}.*") if path.stem == id)
    body.rename(root / "active" / f"{token}.{name.decode()}")
    for path in root.glob(f"*/{id}.report.*"):
        path.unlink()
    sql(root, "update papers set kind = 'intended' where kind = 'report' and number = ?", number)
    state = "state = 'claimed', session = null, shown = 1, ended = null, ending = null"
    sql(root, f"update responses set {state} where number = ?", number)


def edit_report(root: Path, id: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """Have a function change the report of a batch, as patchq has it and as people see it."""
    where = "where kind = 'report' and number = (select number from responses where id = ?)"
    ((data,),) = sql(root, f"select data from papers {where}", id)
    report = json.loads(data)
    edit(report)
    text = json.dumps(report) + "\n"
    sql(root, f"update papers set data = ? {where}", text.encode(), id)
    next(root.glob(f"*/{id}.report.json")).write_text(text)
