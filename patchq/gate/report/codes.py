"""The closed list of report codes, each with its cause and cure.

`docs/report-codes.md` is written from this table by `python -m tests.helpers.report_codes`.  For a
new code see "Add a report code" in `docs/recipes.md`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Code(Struct, frozen=True):
    """One code: why it comes, what the sender does about it, and its older name if it has one."""

    name: str
    cause: str
    cure: str
    alias: str | None = None


# Three lines for each code: its name, the cause, the cure.
_TABLE = """
response.no_edits
    The response holds nothing that reads as an edit.
    Send the change as SEARCH/REPLACE blocks, each with the file's path above it.
response.unreadable_edit
    Something looks like an edit and cannot be read; the rest is not applied without it.
    Correct the edit at the line named, then send the whole response again.
response.truncated
    The response ends in the middle: the model's stop reason or an unclosed block says so.
    Send the whole response again, in smaller edits or in several responses.
response.incomplete
    The file is empty, or not as its `bytes` and `sha256` say.
    Write it as `NAME.tmp`, then rename it.
response.beside
    A warning: code or a command is beside the edits and went into no file.
    Send it as an edit, too, if it is one; what is only shown needs nothing.
response.too_large
    The response exceeds a limit of the configuration (`limits`).
    Split it into several responses; `depends_on` keeps their order.
response.not_text
    The response is not a regular file of UTF-8 text.
    Send plain UTF-8 text without NUL bytes, as a regular file.
frontmatter.unknown_key
    The front matter has a key that patchq does not know.
    Correct or remove the key; text that is no front matter goes below an empty one.
frontmatter.duplicate_key
    The front matter has the same key twice.
    Keep one of the two.
frontmatter.value
    The front matter cannot be understood, or would be lost; as a warning: it has no effect.
    Send it first, from a line `---` to another; quote what YAML reads as something else.
frontmatter.target
    The target is no branch of the repository, or not one that responses may name.
    Leave `target` out, or name a branch that `target` or `targets` of the configuration has.
frontmatter.base
    The base is no commit of the repository.
    Name the commit that the edits were written against, or leave `base` out.
path.invalid
    No git tree can hold the path safely on every system, or a prefix of it may be a directory.
    Name the file by its plain path from the repository's root, with `/` between the parts.
path.outside
    The path, or a link, climbs out, or is absolute and leads to no file of this repository.
    Name a file inside the repository, by its path from the root.
path.denied
    The path is one that no response may change (secrets, git's and patchq's own files).
    Leave the file out; a person has to change it.
path.review
    The path is one that a person has to look at, so the change was proposed, not applied.
    Nothing to send: review the branch and accept or discard it.
path.not_found
    The file to edit, rename or delete does not exist on the base.
    Correct the path; to create the file send it with an empty SEARCH.
path.exists
    The file to create exists already and is not empty, or its name looks like that of another.
    Quote the lines to change in SEARCH, or choose another path.
path.not_a_file
    The path, or a part of it, is a directory, a symbolic link or a submodule.
    Name a regular file, below directories only; links go with a commit that is handed in.
path.new_directory
    The file to create lies in a directory that does not exist, and none may be added.
    Put the file into a directory that exists; do not invent `src/`, `lib/` or `app/`.
path.filtered
    Git stores the file through a filter (LFS, git-crypt), so its text is not in the tree.
    Leave the file out; a person has to change it.
file.unreadable
    The file's content cannot be read from the repository, or exceeds the size limit.
    Leave the file out, or have the repository or `limits.file_bytes` looked after.
file.binary
    The file is binary.
    Leave the file out; patchq edits text.
file.encoding
    The file, or what the edit puts into it, is not UTF-8.
    Leave the file out, or have it converted to UTF-8 first.
match.none
    The file has no such text, even with blanks ignored, or not so many `occurrences` of it.
    Quote the file's lines as they are now, or count them anew; the report shows what is there.
match.ambiguous
    The quoted text is found at several places, and the results would differ.
    Quote more lines around the place that is meant, for instance the ones that are offered.
match.count
    The file has the text, but not as often as `expected_replacements` says, or too often to count.
    Correct the number, or quote more so that exactly the places that are meant match.
match.identical
    Old and new text are equal in every edit, so there is nothing to do.
    Send the new text, or nothing.
anchor.none
    The anchor is nowhere in the file.
    Select an anchor from the file; `patchq anchors FILE` lists them.
anchor.invented
    The anchor is not among the candidates that were offered.
    Select one of the candidates, letter by letter.
anchor.ambiguous
    The anchor is found at several places, or can be read in two ways.
    Select a unique one, state its exact `line`, or say which `scope` is meant.
conflict.overlap
    Two edits of the response change the same lines.
    Join the two into one edit.
conflict.order
    Read on the base, or one edit after the other, the response gives two different results.
    Send one edit for all that shall become of those lines, or the edits in separate responses.
conflict.base
    Lines that the edit changes, or beside them, changed since the base, or it has moved elsewhere.
    Write the edit anew against the file as it is on the target now.
conflict.pending
    Another change that waits for review changes the same lines, or one of the files as a whole.
    Wait until that change is accepted or discarded, or name it in `depends_on`.
base.unknown
    Some edit says nothing of the file's content, and the response declares no base.
    State `base: COMMIT`, or quote the lines to change; a proposed change can be reviewed.
edit.elided
    The new text leaves code out, with a comment or `...` in its place.
    Write the text in full, or quote and replace only the lines that change.
edit.shrinks
    The whole-file write keeps too few of the file's lines.
    Send the complete file, or edits of the lines to change; delete lines by edits.
edit.dependency
    The dependencies between the edits name an unknown edit or form a circle.
    Correct `cascades` and `dependsOn`.
edit.confidence
    The edit's own confidence is below the threshold.
    Look again, then send the edit with the confidence that it deserves, or leave it out.
edit.secret
    The new text holds a secret, such as a key or a token; it is not repeated here.
    Remove the secret and read it from the environment; consider it leaked.
result.syntax
    The file with the edits does not parse, though it did before or is new; as a warning: it may.
    Correct the edit so that the whole file parses; if it does, have a person accept the change.
hook.refused
    A hook of the repository, or of the remote that it lands on, refused the change.
    Do what the hook's output asks for, then send the whole response again.
hook.timeout
    A hook did not end in time and was stopped.
    Make sure that the change does not hang what the hook runs; else raise its time limit.
worktree.dirty
    Files that the change touches are uncommitted or untracked where the target is checked out.
    Commit, stash or move them away, then accept the change.
worktree.unseen
    A work tree that has the target checked out is out of reach, and would be left behind.
    Make it visible and writable to patchq, or run `git worktree prune`; then accept the change.
target.moved
    The target moved and the change cannot follow, or its branch was changed, not by patchq.
    Send the response again, made on the new tip; accept or discard a branch changed by hand.
target.red
    The hooks refuse the target's own tree, so no change is to blame.
    Mend the target; what is accepted, or held for this, goes on by itself once it moves.
target.busy
    The target is being rebased, merged or the like, keeps moving, or its remote takes nothing.
    Finish or abort that, or mend the remote; the change then goes on by itself.
depends.failed
    A change that this one depends on was refused, discarded or reverted, never came, or waits.
    Send that change again, then this one; `patchq accept --stack` lands both where both wait.
review.changes
    A person asks for changes of the proposal, or is to see the answer to that before it lands.
    Answer the comments by a new response with `retries: ID`, made on the base that it names.
llm.not_configured
    The request needs a model, and none is configured.
    Set `llm.base_url` and `llm.model`, or send the prompt of the report yourself.
llm.timeout
    The model did not answer in time.
    Ask again, with fewer files, or raise `llm.timeout_seconds`.
llm.rate_limited
    The model's server takes no more requests for now.
    Ask again later.
llm.server
    The model's server cannot be reached or fails.
    Look at `llm.base_url` and at the server, then ask again.
llm.answer
    The model's answer is not what was asked for.
    Ask again, or send the prompt of the report to another model.
repository.damaged
    An object that the change needs is missing from the repository, or cannot be read.
    Restore it from another clone (`git fsck --full` names it); the change then goes on by itself.
fault.repository
    The repository cannot be opened, read or written; or the commit cannot be signed, and is held.
    Repair what the message names (`git fsck --full`, or the key), then start patchq again.
fault.disk
    The disk is full or fails.
    Make room or repair it; what waits goes on by itself.
fault.database
    The database that carries the queue refuses to work, or the connection to it was lost.
    Look at the server, the role and PATCHQ_DATABASE; what waits goes on by itself.
fault.crashed
    Patchq failed on this response; or processes ended while they decided on it, and it is held.
    If it was refused: keep it for a bug report, send it in smaller parts. If held: `patchq retry`.
fault.in_doubt
    After a crash it is unknown whether the change landed.
    Compare the target with the diff, then send the response again if it is missing.
fault.hook
    A hook could not be started, with the change or without it.
    Correct the hook's command; `patchq config check` finds a program that is missing.
"""

_ALIASES = {
    "path.invalid": "EDIT_INVALID_PATH",
    "path.outside": "EDIT_INVALID_PATH",
    "path.not_found": "EDIT_FILE_NOT_FOUND",
    "path.exists": "ATTEMPT_TO_CREATE_EXISTING_FILE",
    "file.unreadable": "EDIT_FILE_READ_ERROR",
    "match.none": "EDIT_NO_OCCURRENCE_FOUND",
    "match.count": "EDIT_EXPECTED_OCCURRENCE_MISMATCH",
}


_LINES = [line.strip() for line in _TABLE.strip().splitlines()]

# Every code by its name, in the order of the documentation.
CODES: Mapping[str, Code] = {
    name: Code(name, cause, cure, _ALIASES.get(name))
    for name, cause, cure in zip(_LINES[::3], _LINES[1::3], _LINES[2::3], strict=True)
}
