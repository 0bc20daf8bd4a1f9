"""Fuzzing of everything that reads input of users: `make fuzz`, or `python -m tests.fuzz --help`."""

import sys
from pathlib import Path

# pytest imports the modules beside this folder by their names alone; `python -m tests.fuzz` finds them so, too.
if (_tests := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.append(_tests)
