"""Cursor: hooks in hooks.json, in lists without groups, seconds, context as `additional_context`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast_cli.hooks.clients import Client, NativeHook, document, session_in, source_in, text_in
from holdfast_cli.hooks.hook_call import Event, HookCall

# More goes to a file that the agent is told to read.
LIMIT = 10_000


def parse(event: Event, payload: Mapping[str, object]) -> HookCall:
    """Return the call that a payload on stdin is.

    Raises:
        InvalidInput: it names no conversation.

    """
    agent = text_in(payload, "subagent_id", "agent_id")
    if not agent and payload.get("hook_event_name") == "subagentStop":
        agent = text_in(payload, "subagent_type", "generation_id")
    return HookCall(
        client="cursor",
        event=event,
        session=session_in(payload, "conversation_id", "session_id"),
        cwd=text_in(payload, "cwd") or _root(payload),
        transcript=_transcript(payload, agent),
        prompt=text_in(payload, "prompt") if event == "prompt" else "",
        source=source_in(payload) if event == "session-start" else "",
        agent=agent,
    )


def _transcript(payload: Mapping[str, object], agent: str) -> str:
    """Return the transcript; the command line does not name its own, and early versions wrote plain text."""
    named = text_in(payload, *(("agent_transcript_path",) if agent else ()), "transcript_path")
    session = text_in(payload, "conversation_id", "session_id")
    if named or agent or not session.replace("-", "").isalnum():
        return named if named.endswith(".jsonl") else ""
    folders = (Path.home() / ".cursor" / "projects").glob("*/agent-transcripts")
    paths = (
        folder / name for folder in folders for name in (f"{session}.jsonl", f"{session}/{session}.jsonl")
    )
    return str(next(filter(Path.is_file, paths), ""))


def _root(payload: Mapping[str, object]) -> str:
    """Return the first folder of the workspace."""
    roots = payload.get("workspace_roots")
    return roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""


def write(event: Event, text: str, message: str) -> str:  # noqa: ARG001 - nothing shows it to the person
    """Return what belongs on stdout: the prompt goes on, with a text as context where there is one."""
    goes_on: dict[str, object] = {"continue": True} if event == "prompt" else {}
    takes_text = event in ("session-start", "prompt") and text
    return document(goes_on | ({"additional_context": text} if takes_text else {}))


CLIENT = Client(
    name="cursor",
    title="Cursor",
    parse=parse,
    write=write,
    limit=LIMIT,
    hooks=(
        NativeHook("session-start", "sessionStart", 10),
        NativeHook("prompt", "beforeSubmitPrompt", 5),
        NativeHook("stop", "stop", 30),
        NativeHook("stop", "subagentStop", 30),
        NativeHook("before-compaction", "preCompact", 10),
        NativeHook("session-end", "sessionEnd", 5),
    ),
    folder=".cursor",
    user_file="hooks.json",
    project_file="hooks.json",
    shared=True,
    grouped=False,
    version=(("version", 1),),
)
