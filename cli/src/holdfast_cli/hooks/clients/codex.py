"""Codex: hooks in hooks.json, in the shapes of Claude Code, run only after the person trusts them."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast_cli.hooks.clients import Client, NativeHook, call_in, context_answer
from holdfast_cli.hooks.hook_call import Event, HookCall

LIMIT = 10_000
_CONTEXT: dict[Event, str] = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


def parse(event: Event, payload: Mapping[str, object]) -> HookCall:
    """Return the call that a payload on stdin is.

    Raises:
        InvalidInput: it names no session.

    """
    return call_in("codex", event, payload, "last_assistant_message")


def write(event: Event, text: str, message: str) -> str:
    """Return what belongs on stdout: a text as context where the event takes one, else an empty object.

    At a stop anything that is not JSON is an error.
    """
    return context_answer(_CONTEXT.get(event), text, message) or "{}"


CLIENT = Client(
    name="codex",
    title="Codex",
    parse=parse,
    write=write,
    limit=LIMIT,
    hooks=(
        NativeHook("session-start", "SessionStart", 10),
        NativeHook("prompt", "UserPromptSubmit", 5),
        NativeHook("stop", "Stop", 30),
        NativeHook("stop", "SubagentStop", 30),
        NativeHook("before-compaction", "PreCompact", 10),
        # More than 3 seconds are refused.
        NativeHook("session-end", "SessionEnd", 3),
    ),
    folder=".codex",
    user_file="hooks.json",
    project_file="hooks.json",
    shared=True,
    home_variable="CODEX_HOME",
)
