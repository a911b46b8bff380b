"""Python programs that tests run as processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program whose output can be read while it runs."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(script: str, *arguments: object) -> str:
    """Run a program that must end well, and give what it wrote."""
    return run_together(script, [arguments])[0]


def run_together(script: str, arguments: Iterable[Sequence[object]]) -> list[str]:
    """Run a program several times at once. One that calls `input` goes on when all of them do."""
    programs = [start(script, *each) for each in arguments]
    for program in programs:
        if "input()" in script:
            assert program.stdout is not None
            program.stdout.readline()
    ended = [(*program.communicate("go\n"), program.returncode) for program in programs]
    for _, errors, code in ended:
        assert code == 0, errors
        assert not errors, errors
    return [output for output, _, _ in ended]
