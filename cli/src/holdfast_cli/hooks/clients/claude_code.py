"""Claude Code: hooks in settings.json, timeouts in seconds, context as `hookSpecificOutput`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import InvalidInput
from holdfast_cli.hooks.clients import Client, NativeHook, call_in, context_answer
from holdfast_cli.hooks.hook_call import Event, HookCall

# Beyond 10,000 characters it writes a context to a file, and shows the model the beginning.
LIMIT = 10_000
_CONTEXT: dict[Event, str] = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


def parse(event: Event, payload: Mapping[str, object]) -> HookCall:
    """Return the call that a payload on stdin is.

    Raises:
        InvalidInput: it names no session, or Cursor wrote it, which runs the hooks of Claude Code as well.

    """
    if "cursor_version" in payload:
        raise InvalidInput(
            "Cursor called the hook of Claude Code, whose settings it reads too.",
            "Use `holdfast install cursor`, and switch off third-party hooks in Cursor.",
        )
    return call_in("claude-code", event, payload, "last_assistant_message")


def write(event: Event, text: str, message: str) -> str:
    """Return what belongs on stdout: a text as context where the event takes one, else nothing."""
    return context_answer(_CONTEXT.get(event), text, message)


_BACKGROUND = (("async", True),)
CLIENT = Client(
    name="claude-code",
    title="Claude Code",
    parse=parse,
    write=write,
    limit=LIMIT,
    hooks=(
        NativeHook("session-start", "SessionStart", 10),
        NativeHook("prompt", "UserPromptSubmit", 5),
        NativeHook("stop", "Stop", 120, _BACKGROUND),
        NativeHook("stop", "SubagentStop", 120, _BACKGROUND),
        NativeHook("before-compaction", "PreCompact", 10),
        # All hooks of this event share 1.5 seconds, unless one asks for more; a busy machine needs over 5.
        NativeHook("session-end", "SessionEnd", 30),
    ),
    folder=".claude",
    user_file="settings.json",
    project_file="settings.local.json",
    shared=False,
    home_variable="CLAUDE_CONFIG_DIR",
)
