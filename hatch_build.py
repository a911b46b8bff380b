"""The hook of a build that compiles the kernel in C; without a compiler recalls go by numpy."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src", "holdfast", "search", "_kernel.c")
# A fused multiplication would round once where numpy rounds twice.
FLAGS = ["-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fvisibility=hidden"]


class KernelHook(BuildHookInterface[Any]):
    """Compile the kernel beside its source, and mark the wheel with this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; `version` is not needed."""
        del version
        source = Path(self.root, SOURCE)
        target = source.with_suffix(".abi3.so")
        if compile_kernel(source, target):
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
            build_data["artifacts"].append(f"/{target.relative_to(self.root)}")


def compile_kernel(source: Path, target: Path, *flags: str) -> bool:
    """Compile the kernel; return whether that could be done, and say why not."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    # Names of Python are looked up when it is loaded.
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    include = f"-I{sysconfig.get_path('include')}"
    command = [*compiler, *FLAGS, *flags, *undefined, include, str(source), "-o", str(target), "-lm"]
    # Nothing of an older source stays behind.
    target.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the compiler
    except OSError as error:
        why = str(error)
    else:
        why = done.stderr
        if not done.returncode:
            return True
    print(f"The kernel could not be compiled; recalls go by numpy. {why}", file=sys.stderr)  # noqa: T201
    return False
