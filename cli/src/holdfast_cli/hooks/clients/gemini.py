"""Gemini CLI: hooks in settings.json, timeouts in milliseconds, nothing but JSON on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast_cli.hooks.clients import Client, NativeHook, call_in, context_answer
from holdfast_cli.hooks.hook_call import Event, HookCall

LIMIT = 10_000
_CONTEXT: dict[Event, str] = {"session-start": "SessionStart", "prompt": "BeforeAgent"}


def parse(event: Event, payload: Mapping[str, object]) -> HookCall:
    """Return the call that a payload on stdin is.

    Raises:
        InvalidInput: it names no session.

    """
    call = call_in("gemini", event, payload, "prompt_response")
    if not call.prompt.startswith("<hook_context>"):
        return call
    # Without a terminal, the context of a session's start comes before the first prompt and back to hooks.
    from holdfast_cli.formats.gemini import without_contexts

    return replace(call, prompt=without_contexts(call.prompt))


def write(event: Event, text: str, message: str) -> str:
    """Return what belongs on stdout: a text as context where the event takes one, else an empty object."""
    return context_answer(_CONTEXT.get(event), text, message) or "{}"


CLIENT = Client(
    name="gemini",
    title="Gemini CLI",
    parse=parse,
    write=write,
    limit=LIMIT,
    hooks=(
        NativeHook("session-start", "SessionStart", 10_000, (("name", "holdfast-session-start"),)),
        NativeHook("prompt", "BeforeAgent", 5_000, (("name", "holdfast-prompt"),)),
        NativeHook("stop", "AfterAgent", 30_000, (("name", "holdfast-stop"),)),
        NativeHook("before-compaction", "PreCompress", 10_000, (("name", "holdfast-before-compaction"),)),
        NativeHook("session-end", "SessionEnd", 5_000, (("name", "holdfast-session-end"),)),
    ),
    folder=".gemini",
    user_file="settings.json",
    project_file="settings.json",
    shared=True,
)
