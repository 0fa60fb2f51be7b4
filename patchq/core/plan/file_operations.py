"""Operations on whole files: create, write, delete, rename.

Each is checked against the tree and against the rest of the batch.  A file whose text, or place,
another one takes is judged as one that is written as a whole: it has to keep enough of its lines,
unless they only move, and who does that says nothing of what it held.  Calls are done in their
order, so that one may write anew what others before it wrote; these are left out then.
"""

from __future__ import annotations

from patchq.core.model.ops import Create, DeleteFile, Replace, SetMode, Write, WriteBytes
from patchq.core.model.values import Edit, ErrorProblem, Tree
from patchq.core.plan import guards, targets
from patchq.core.plan.edited_text import ChangedRange
from patchq.core.plan.files import File, Files, clash, collision
from patchq.core.plan.targets import EditRefused, PlanRules
from patchq.core.resolve.ladder import Found, Rewrite, resolve
from patchq.core.resolve.levels import quoted_lines
from patchq.core.text.binary_patch import blob_id
from patchq.core.text.lines import Text
from patchq.core.text.quote import decode

_MOST_SHOWN = 60


class FileOperations:
    """Operations of a batch on its files as a whole."""

    def __init__(self, tree: Tree, rules: PlanRules, files: Files) -> None:
        self._tree = tree
        self._rules = rules
        self._files = files
        deletions = {e.path: e.op.old for e in files.whole if isinstance(e.op, DeleteFile)}
        self._quoted = {path for path, old in deletions.items() if old is not None}
        made = {e.path for e in files.whole if isinstance(e.op, Create | Write)}
        self._replaced = set[str]()  # the files that text deletes and makes, in whichever order
        if not files.in_order:
            self._replaced = {path for path in made & deletions.keys() if tree.entry(path)}
        self._deleted = deletions.keys() - self._replaced
        # The paths of files that an edit changes without saying what it has seen of them.
        self.blind: list[str] = []
        # The edits whose text a later call writes anew or deletes, and that one.
        self.overwritten: dict[str, str] = {}

    def create(self, edit: Edit, op: Create) -> bool:
        """Create the file; return False if it exists with the same bytes.

        Raises `EditRefused`.
        """
        path, files = edit.path, self._files
        if self._is_replaced(path):
            return self._rewrite(edit, Write(op.text), files.of_base(path))
        if path in files.placed or (path in files.renames and not files.in_order):
            raise clash(edit, files.placed.get(path), "another edit of the change")
        free = files.is_free(path)
        if not free and (other := files.base.get(path)):
            raise clash(edit, other, "another edit of the change")
        entry = files.check_new(path)
        if entry is None and op.quoting:
            targets.check_twin(self._tree, path, files.leaving)
        there = None if entry is None else self._tree.read(path)
        data = op.text.encode("utf-8", "surrogateescape")
        if there == data and not free:
            return False
        if there and not free:
            raise _exists(path, f"{path} exists and is not empty", there)
        guards.check_escapes(edit, op.text)
        guards.check_elision(edit, self._rules, None)
        executable = op.executable or (entry is not None and entry.executable)
        file = File(path, Text(data), there, executable)
        file.by["made"] = edit.id
        file.edits.append(edit.id)
        files.place(file, path)
        if there:
            self.blind.append(path)
        return True

    def write(self, edit: Edit, op: Write) -> bool:
        """Replace the file's text or create it; return True if that changes anything.

        Raises `EditRefused`.
        """
        path, files = edit.path, self._files
        if self._is_replaced(path):
            return self._rewrite(edit, op, files.of_base(path))
        new = path not in files.placed and path not in files.renames
        if new and files.is_free(path) and not files.in_order:
            what = f"the renaming of {path}, after which it writes another file than before"
            raise collision(edit, what, files.renamed[path].id, "conflict.order")
        if new and (files.is_free(path) or not self._tree.entry(path)):
            return self.create(edit, Create(op.text, op.quoting))
        file = files.named(path)[-1]
        if not files.in_order and file.by.keys() & {"edited", "made", "deleted", "written"}:
            raise clash(edit, file, "another edit of the file that this one writes")
        if file.origin is not None:
            return self._rewrite(edit, op, file)
        guards.check_escapes(edit, op.text)
        self._overwrite(file, edit.id, Text(op.text.encode("utf-8", "surrogateescape")))
        file.by["made"] = edit.id
        return True

    def delete(self, edit: Edit, op: DeleteFile) -> None:
        """Delete the file.

        Raises `EditRefused`, also if the edit quotes other content than the file's.
        """
        files = self._files
        file = files.of_base(edit.path, link=True) if op.link else files.named(edit.path)[0]
        other = op.before is not None and op.before != blob_id(file.before or b"")
        if other or (op.old is not None and not self._is_whole(file, op.old)):
            what = "names other bytes" if other else "quotes other lines"
            raise EditRefused(
                ErrorProblem(
                    "match.none",
                    f"edit {edit.id} deletes {edit.path} and {what} than it has",
                    "read the file again; it has changed or was misremembered",
                    path=edit.path,
                )
            )
        if edit.path in self._replaced:
            return
        if self._files.in_order:
            wrong = "deleted" in file.by or file.path != edit.path
        else:
            wrong = bool(file.by.keys() & {"edited", "renamed", "made", "deleted"})
        if wrong:
            raise clash(edit, file, "an edit of the file that this one deletes")
        self._overwrite(file, edit.id, file.text)
        file.by["deleted"] = edit.id
        self._files.placed.pop(edit.path, None)
        if op.old is None and op.before is None and file.origin is not None:
            self.blind.append(edit.path)

    def rename(self, edit: Edit, to: str) -> None:
        """Rename the file; raises `EditRefused`."""
        files, file = self._files, self._files.named(edit.path)[0]
        there = files.check_new(to)
        if there is not None and (to == edit.path or not files.is_free(to)):
            raise _exists(to, f"{edit.path} cannot be renamed: {to} exists")
        made = "made" in file.by and not files.in_order
        if made or "deleted" in file.by or file.path != edit.path or to in files.placed:
            raise clash(edit, file, "another edit of the change")
        if there is not None:
            gone, new = files.of_base(to).text, Write(decode(file.text.data))
            if to in self._deleted:
                guards.check_size(edit, new, self._rules, gone)
            self.blind.append(to)
        file.by["renamed"] = edit.id
        files.place(file, to)

    def put(self, edit: Edit, op: WriteBytes) -> bool:
        """Replace the file's bytes or the link's target; return True if that changes anything.

        Raises `EditRefused`, also if the file has not the bytes that the edit was made for.
        """
        path, files = edit.path, self._files
        there = files.base.get(path)
        taken = there is not None and set(there.by) != {"renamed"}
        if taken or path in files.placed or path in files.renames:
            raise clash(edit, files.placed.get(path) or there, "another edit")
        if op.before is None:
            return self._put_new(edit, op)
        file = files.of_base(path, link=op.from_link)
        before = file.before or b""
        if before == op.data and not op.turned:
            return False
        if blob_id(before) != op.before:
            raise EditRefused(
                ErrorProblem(
                    "match.none",
                    f"edit {edit.id} gives {path} other bytes, and it does not hold those "
                    f"that it was made for ({op.before[:12]})",
                    "make the change anew on the file as it is",
                    path=path,
                )
            )
        file.stated = op.data
        file.link = op.link
        if op.turned:
            file.executable = op.executable
        file.by["written"] = edit.id
        file.edits.append(edit.id)
        return True

    def _put_new(self, edit: Edit, op: WriteBytes) -> bool:
        path, files = edit.path, self._files
        entry = files.check_new(path)
        there = None if entry is None else self._tree.read(path)
        if there == op.data and not op.link:
            return False
        if there is not None:
            raise _exists(path, f"{path} exists")
        file = File(path, Text(op.data), None, op.executable, link=op.link, stated=op.data)
        file.by["made"] = edit.id
        file.edits.append(edit.id)
        files.place(file, path)
        return True

    def set_mode(self, edit: Edit, op: SetMode) -> bool:
        """Set the file's executable bit; return True if that changes anything.

        Raises `EditRefused`.
        """
        file = self._files.named(edit.path)[0]
        if "deleted" in file.by or "made" in file.by:
            raise clash(edit, file, "another edit of the file")
        changes = file.executable != op.executable
        file.executable = op.executable
        file.edits.append(edit.id)
        return changes

    # ------------------------------------------------------------ writing

    def _is_replaced(self, path: str) -> bool:
        if not self._files.in_order:
            return path in self._replaced
        file = self._files.base.get(path)
        return file is not None and "deleted" in file.by and path not in self._files.placed

    def _rewrite(self, edit: Edit, op: Write, file: File) -> bool:
        """Replace the text of a base file; return True if that changes anything."""
        if not self._files.in_order and file.by.keys() & {"edited", "written"}:
            raise clash(edit, file, "another edit of the file that this one writes")
        guards.check_elision(edit, self._rules, file.text)
        if file.text.lines:
            targets.check_text(edit.path, file.text.data, self._rules)
        guards.check_size(edit, op, self._rules, file.text)
        self._overwrite(file, edit.id, file.text)
        file.by["written"] = edit.id
        if edit.path not in self._quoted:
            self.blind.append(edit.path)
        new = op.text.removeprefix("\ufeff" if file.text.offset else "")
        file.final_newline = not new or new.endswith("\n")
        hunks = Rewrite(file.text.contents, quoted_lines(new)).at(file.text, 0)
        guards.check_encoding(edit, file.text, hunks)
        guards.check_elided_changes(edit, self._rules, file.text, hunks)
        if hunks:
            file.edited.add([ChangedRange(edit.id, edit.format, hunks)])
        return file.after() != file.before

    def _overwrite(self, file: File, edit: str, text: Text) -> None:
        """Mark earlier edits of the file as overwritten, and restart it from `text`."""
        self.overwritten.update(dict.fromkeys(file.edits, edit))
        file.cleared(text)
        file.edits = [edit]

    def _is_whole(self, file: File, quote: str) -> bool:
        text = file.edited.now() if self._files.in_order else file.text
        if not text.lines or not quote:
            return not text.lines and not quote
        found = resolve(text, Replace(quote, ""), self._rules.levels)
        return isinstance(found, Found) and (found.start, found.end) == (0, len(text.lines))


def _exists(path: str, message: str, there: bytes = b"") -> EditRefused:
    """Return the refusal of a path that exists, with the file's first lines.

    `there` is the file's content; the lines are shown so that an edit can quote them.
    """
    lines = tuple(map(decode, Text(there).contents[:_MOST_SHOWN])) if there else ()
    return EditRefused(
        ErrorProblem(
            "path.exists",
            message,
            "send an edit that quotes the lines to change, or choose another path",
            path=path,
            excerpt=(1, lines) if lines else None,
        )
    )
