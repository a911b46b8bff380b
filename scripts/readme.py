# ruff: noqa: INP001, S102 - a script that runs a program of ours, not a package
"""Run the programs of a README, in an environment that has the library and nothing else: `make dist`."""

import re
import sys
from pathlib import Path

if __name__ == "__main__":
    exec("\n".join(re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text("utf-8"), re.DOTALL)), {})
