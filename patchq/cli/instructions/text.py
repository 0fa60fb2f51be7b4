"""What an agent is taught.  The forms are the registry's own words; a test follows the rest to the
letter, and compares its commands, tools, states and exit codes with the code."""

from __future__ import annotations

from textwrap import indent

from patchq.core.formats.registry import FORMATS

_FORM = FORMATS["search_replace"]

NAME = "patchq"
DESCRIPTION = (
    "Hands changes of this repository's files to patchq, which makes one commit of them or refuses "
    "them with a report of what to send instead. Use it whenever files of this repository are to "
    "be created, edited, renamed or deleted, and to read what patchq said of a change."
)
"""When the skill is to be used, in the third person, as its format asks for."""
SKILL_HEAD = f"---\nname: {NAME}\ndescription: {DESCRIPTION}\n---\n\n"
TEXT = f"""\
## Changes go through patchq

This repository takes changes through patchq. What you hand in becomes one commit, all of it, or is
refused, all of it, with a report that says why and what to send instead. Leave the branch that is
checked out here alone: no commits, no merges. Never run `patchq accept`: people decide.

### Hand a change in

Take the first of these ways that you have.

1. The tools of the MCP server `patchq`: `how_to_answer` gives files, their base and a form, `check`
   tells what would become of your edits, `submit` hands them in and waits for the verdict.

2. A work tree or branch of your own, changed in whatever way you like:

   ```sh
   patchq submit --worktree DIR --wait --timeout 600
   patchq submit --branch BRANCH --wait --timeout 600
   ```

   The first takes all that the work tree has, committed or not; the second what the branch has
   committed and the target has not. `patchq status --ahead` tells beforehand whose work overlaps.

3. A response: a file of edits in one of the forms below, outside of the repository, under a name
   that no other response has.

   ```sh
   patchq check FILE
   patchq submit FILE --base COMMIT --message SUBJECT --agent AGENT --wait --timeout 600
   ```

   COMMIT is the one from which you read the files (`git rev-parse HEAD`), AGENT is your name.
   `check` says what would become of the edits, and hands nothing in; `-` for FILE reads standard
   input. A change that builds on one that has not landed names it in lines at the very top of its
   response; hand it in without `--wait`, since it may be held until that one lands:

   ```
   ---
   depends_on: [ID]
   ---
   ```

### Write the edits

`patchq formats {_FORM.name}` prints this form, and `patchq formats` names the others:

{indent(_FORM.instructions, "    ", lambda line: bool(line.strip()))}
The whole text of a file, new or not, goes into a fence whose info names it behind a colon, like
`python:path/to/file.py`. The JSON of calls of your own editing tools is read, too. Paths are
relative to the repository's root; absolute ones below it, or below a work tree of it, are read.

### Read the verdict

The first word that is printed is the state, the second the ID. The exit code says it as well:

| exit code | state | do |
|---|---|---|
| 0 | `applied`, `proposed`, `duplicate` | nothing; what is `proposed` waits for a person |
| 1 | `rejected` | nothing of it was applied: mend it, as below |
| 2 | | the command was wrong: do what its message says |
| 3, 75 | | the machine is at fault: tell a person |
| 124 | | there is no verdict yet: `patchq wait ID --timeout 600` |

If it says that no daemon runs, a person has to start `patchq watch`.

A refusal prints a page: every problem with its code, the file's real lines, and what to do. Correct
the edits by these lines, not by memory. Send all edits again, the good ones too, in a new response,
under the lines from `---` to `---` that the page gives, which name the refused ID and the base:

```sh
patchq submit ANEW --agent AGENT --wait --timeout 600
```

A person may send back what is proposed: `patchq show ID` then has their comments, the lines that
these speak of, and the lines with which an answer begins. Answer as you would a refusal. To wait
for what they say:

```sh
patchq wait ID --for accepted --for discarded --for changes_requested --timeout 600
```

What came from a work tree or a branch is corrected there, and handed in again. `patchq show ID`
prints the page once more, `patchq show ID --report` the report as JSON.
"""
