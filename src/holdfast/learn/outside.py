"""Outside sources: which tools and programs brought into a session what nobody here has written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from holdfast.learn.uses import rendered, uses
from holdfast.types import Message

_USUAL = (
    "*web*",
    "*fetch*",
    "*browser*",
    "*http*",
    "*search_engine*",
    "*screenshot*",
    "mcp__*",
    "task",
    "agent",
    "dispatch_agent",
    "spawn_agent",
    "*subagent*",
    "*sub_agent*",
)  # names of tools, in lower case
_OWN_TOOLS = "mcp__holdfast"
_SHELL = re.compile(r"bash|shell|terminal|exec|command|^sh$|^cmd$", re.IGNORECASE)
_PROGRAM = re.compile(
    r"(?:^|[;&|(`\n]|[ \t]-\w{0,3}c[ \t]{1,4}[\"']?)[ \t]{0,8}"
    r"(?:(?:sudo|env|time|nohup|exec|command|xargs)[ \t]{1,4}(?:-\S{1,20}[ \t]{1,4}){0,4}|\w{1,40}=\S{0,80}[ \t]{1,4}){0,4}"
    r"(?:[\w./~-]{0,80}/)?(curl|wget|ssh|scp|sftp|git[ \t]{1,4}clone(?=[^\n;|&]{1,300}?(?:://|@)))(?=[\s\"'])",
)


def untrusted(messages: Sequence[Message], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Name the outside sources that a session used, sorted.

    These are tools whose lower-case names match one of the patterns `names`, None for the usual ones; programs that a
    shell ran to reach another machine, such as "curl"; and tools whose results the guard took for instructions. Tools of
    this memory are none.
    """
    found = {*_used(messages, _USUAL if names is None else names), *_flagged(messages)}
    return tuple(sorted(name for name in found if not name.lower().startswith(_OWN_TOOLS)))


def _used(messages: Sequence[Message], patterns: Sequence[str]) -> Iterator[str]:
    for use in uses(messages):
        if any(fnmatchcase(use.name.lower(), pattern) for pattern in patterns):
            yield use.name
        if _SHELL.search(use.name):
            yield from (
                " ".join(run.split()) for command in use.commands for run in _PROGRAM.findall(command)
            )


def _flagged(messages: Sequence[Message]) -> Iterator[str]:
    callers = {call.id: call.name for message in messages for call in message.calls}
    for message in messages:
        if "instruction" in message.flags:
            if message.role == "tool":
                yield callers.get(message.call_id or "") or message.name or "tool"
            elif use := rendered(message):
                yield use.name
