"""What a hook can see and do: its processes, the files that it may write, its work tree.

`process` starts one and hears of its end, through `keeper`, a program of its own, which builds the
jail and ends all that a hook leaves; `worktree` has the trees that hooks see ready.
"""
