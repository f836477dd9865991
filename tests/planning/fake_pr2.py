"""Programs that stand in for PR2: they write, into the directory they are run in, what they are told to."""

from __future__ import annotations

import sys
from pathlib import Path

# As the planner's translator writes them for the coins of small_policies.py, with the names that it was given for the
# actions: a1 flip, a2 push, a3 wait, a4 win.
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
Atom heads(penny)
Atom tails(penny)
<none of those>
end_variable
begin_variable
var1
-1
2
Atom lost()
NegatedAtom lost()
end_variable
begin_variable
var2
-1
2
Atom rich()
NegatedAtom rich()
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
Execute: a4 penny / SC / d=1

If holds: var0:1 var1:1
Execute: a1 penny / SC / d=2
"""


def write_program(path: Path, files: dict[str, str], then: str = "") -> str:
    """A program at this path that writes the files and does what follows; the command that runs it."""
    lines = [f"#!{sys.executable}", "import os, sys, time", "from pathlib import Path"]
    lines += [f"Path({name!r}).write_text({text!r})" for name, text in files.items()]
    path.write_text("\n".join([*lines, then, ""]))
    path.chmod(0o755)
    return str(path)
