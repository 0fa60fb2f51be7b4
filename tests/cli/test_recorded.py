"""A session of Claude Code as it prints one, with all that stands round its calls, is handed in.

The members of the events are those that `claude -p --output-format stream-json --verbose` prints.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.helpers.command import patchq
from tests.helpers.gitrepo import git, make_repo

FILES = {"src/a.py": "x = 1\ny = 2\n", "src/b.py": "a = 1\nb = 1\nb = 1\n", "src/c.py": "old\n"}
BESIDE = {"parent_tool_use_id": None, "session_id": "e8889acf", "uuid": "55848d72"}
NOT_FOUND = "String to replace not found in file.\nString: x = 9"


def says(number: int, *content: dict[str, Any]) -> dict[str, Any]:
    message = {
        "model": "claude-opus-4-1", "id": f"msg_{number}", "type": "message", "role": "assistant",
        "content": [*content], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 4, "output_tokens": 2, "service_tier": "standard"},
    }  # fmt: skip
    return {"type": "assistant", "message": message, **BESIDE}


def call(number: int, name: str, **given: Any) -> dict[str, Any]:
    return says(
        number,
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given},
    )


def result(number: int, text: str, told: Any = None, *, error: bool = False) -> dict[str, Any]:
    item = {"tool_use_id": f"toolu_{number}", "type": "tool_result", "content": text}
    content = [{**item, "is_error": True} if error else item]
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, **BESIDE, "tool_use_result": told}


def session(root: str) -> str:
    """All that is printed by an agent that works below the root."""
    edited = {"filePath": f"{root}/src/a.py", "oldString": "x = 1", "newString": "x = 2",
              "originalFile": FILES["src/a.py"], "userModified": False, "replaceAll": False,
              "structuredPatch": [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2,
                                   "lines": ["-x = 1", "+x = 2", " y = 2"]}]}  # fmt: skip
    system = {"type": "system", "session_id": "e8889acf", "uuid": "24d854bf"}
    hook = {"hook_id": "h", "hook_name": "SessionStart:startup", "hook_event": "SessionStart"}
    events = [
        {**system, "subtype": "hook_started", **hook},
        {**system, "subtype": "hook_response", **hook, "output": "", "exit_code": 0},
        {**system, "subtype": "init", "cwd": root, "tools": ["Task", "Bash", "Edit", "Write"],
         "mcp_servers": [], "model": "claude-opus-4-1", "permissionMode": "acceptEdits",
         "slash_commands": ["compact"], "apiKeySource": "none", "output_style": "default"},
        says(0, {"type": "thinking", "thinking": "x = 1, so…", "signature": "EqQB"}),
        says(0, {"type": "text", "text": "I'll change `src/a.py`."}),
        call(1, "Read", file_path=f"{root}/src/a.py"),
        result(1, "     1→x = 1\n     2→y = 2\n", {"type": "text", "file": {"numLines": 2}}),
        call(2, "Edit", replace_all=False, file_path=f"{root}/src/a.py", old_string="x = 9",
             new_string="x = 3"),
        result(2, f"<tool_use_error>{NOT_FOUND}</tool_use_error>", f"Error: {NOT_FOUND}",
               error=True),
        call(3, "Edit", replace_all=False, file_path=f"{root}/src/a.py", old_string="x = 1",
             new_string="x = 2"),
        result(3, f"The file {root}/src/a.py has been updated.", edited),
        call(4, "MultiEdit", file_path=f"{root}/src/b.py", edits=[
            {"old_string": "a = 1", "new_string": "a = 2"},
            {"old_string": "b = 1", "new_string": "b = 2", "replace_all": True}]),
        result(4, f"Applied 2 edits to {root}/src/b.py"),
        call(5, "Write", file_path=f"{root}/src/new/d.py", content="d = 1\n"),
        result(5, f"File created successfully at: {root}/src/new/d.py", {"type": "create"}),
        call(6, "Write", file_path=f"{root}/src/c.py", content="new\n"),
        result(6, f"The file {root}/src/c.py has been updated.", {"type": "update"}),
        call(7, "Bash", command="npm run format", description="Format"),
        result(7, "Exit code 1", "Error: Exit code 1", error=True),
        {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}, **BESIDE},
        says(8, {"type": "text", "text": "Done."}),
        {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 18319,
         "duration_api_ms": 21018, "num_turns": 8, "result": "Done.", "stop_reason": "end_turn",
         "session_id": "e8889acf", "total_cost_usd": 0.19, "usage": {}, "modelUsage": {},
         "permission_denials": [], "uuid": "58d12213"},
    ]  # fmt: skip
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def test_a_session_in_a_work_tree_behind_a_link(tmp_path: Path) -> None:
    """It tells the real path of none of its files, and stands in a linked work tree."""
    repo = make_repo(tmp_path / "real/repo", FILES)
    git("worktree", "add", "-q", "-b", "agent", "../agent", cwd=repo)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    patchq("init", cwd=repo)
    for place in ("link/agent", "real/repo"):
        told = patchq("--json", "apply", "-", cwd=repo, stdin=session(str(tmp_path / place))).json()
        assert told["state"] == "proposed"
        assert [(edit["path"], edit["op"]) for edit in told["edits"]] == [
            ("src/a.py", "replace"), ("src/b.py", "replace"), ("src/b.py", "replace"),
            ("src/new/d.py", "write"), ("src/c.py", "write"),
        ]  # fmt: skip
        show = [
            git("show", f"{told['branch']}:{path}", cwd=repo)
            for path in ("src/a.py", "src/b.py", "src/c.py", "src/new/d.py")
        ]
        assert show == ["x = 2\ny = 2", "a = 2\nb = 2\nb = 2", "new", "d = 1"]
        patchq("discard", told["id"], cwd=repo)
