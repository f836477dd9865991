"""Programs that stand in for PR2: they write, into the directory they are run in, what they are told to."""

from __future__ import annotations

import sys
from pathlib import Path

# As the planner's translator writes them for the coins of small_policies.py, in the names that it was given: actions
# a1 flip, a2 push, a3 wait, a4 win; predicates p1 heads, p2 tails, p3 lost, p4 rich; o1 is the penny.
TRANSLATION = """begin_version
3
end_version
begin_metric
0
end_metric
3
begin_variable
var0
-1
3
Atom p1(o1)
Atom p2(o1)
<none of those>
end_variable
begin_variable
var1
-1
2
Atom p3()
NegatedAtom p3()
end_variable
begin_variable
var2
-1
2
Atom p4()
NegatedAtom p4()
end_variable
0
begin_state
1
1
1
end_state
"""

LIST = """
If holds: var2:0
Execute: goal / SC / d=0

If holds: var0:0
Execute: a4 o1 / SC / d=1

If holds: var0:1 var1:1
Execute: a1 o1 / SC / d=2
"""

GRAPH = """{
  "init": "3", "goal": "1",
  "nodes" : {
    "3": {"action": "a1 o1", "state": "0x3", "distance": 2, "is_goal": 0, "is_sc": 1, "successors": []},
    "1": {"action": "goal_action", "state": "0x1", "distance": 0, "is_goal": 1, "is_sc": 1, "successors": []},
    "2": {"action": "a4 o1", "state": "0x2", "distance": 1, "is_goal": 0, "is_sc": 1, "successors": []}
  },
  "edges" : [["3", ">", "2"], ["2", ">", "1"]],
  "states" : {
    "0x3": ["Atom p2(o1)", "NegatedAtom p3()"],
    "0x1": ["Atom p4()"],
    "0x2": ["Atom p1(o1)"]
  }
}"""


def write_program(path: Path, files: dict[str, str], then: str = "") -> str:
    """A program at this path that writes the files and does what follows; the command that runs it."""
    lines = [f"#!{sys.executable}", "import os, sys, time", "from pathlib import Path"]
    lines += [f"Path({name!r}).write_text({text!r})" for name, text in files.items()]
    path.write_text("\n".join([*lines, then, ""]))
    path.chmod(0o755)
    return str(path)
