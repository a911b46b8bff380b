"""The coding agents that can call hooks: one module each knows what its client writes, reads and demands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, cast

from holdfast.errors import InvalidInput, shown
from holdfast_cli.hooks.hook_call import Event, HookCall

NAMES: tuple[str, ...] = ("claude-code", "codex", "cursor", "gemini")
"""The clients whose hooks are known, by their names on the command line."""


@dataclass(frozen=True, slots=True)
class NativeHook:
    """What a client calls at an event: its own name of the event, and the members of the hook's entry."""

    event: Event
    native: str
    timeout: int
    """In the unit of the client."""
    members: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent: how it reports an event, how it wants to be answered, and where its hooks are listed.

    `parse` reads what it writes to stdin, and raises `InvalidInput` for what is no call of this client.
    `write` returns what it expects on stdout for a text to the model, of at most `limit` characters, and a
    message to the person; "" stands for none. `folder` is where its configuration is, below the user's home
    or the project; `home_variable` the variable of the environment that names it elsewhere.
    """

    name: str
    title: str
    parse: Callable[[Event, Mapping[str, object]], HookCall]
    write: Callable[[Event, str, str], str]
    limit: int
    hooks: tuple[NativeHook, ...]
    folder: str
    user_file: str
    project_file: str
    shared: bool
    """Whether the project's file is committed, so that others run it as well."""
    grouped: bool = True
    """Whether hooks stand in groups with a matcher (`{"hooks": [{"type": "command", …}]}`)."""
    home_variable: str = ""
    version: tuple[tuple[str, object], ...] = ()
    """The members that a new file of hooks must have."""

    def answer(self, event: Event, text: str, message: str = "") -> str:
        """Return what is written to stdout: `text` is for the model, `message` for the person.

        Where an event takes neither, it is what the client demands, "" where that is nothing.
        """
        return self.write(event, cut(text, self.limit), message)


def client_of(name: str) -> Client:
    """Return the client of a name, without loading the others.

    Raises:
        InvalidInput: no client is called so.

    """
    if name not in NAMES:
        raise InvalidInput(f"{shown(name)} is no client with hooks.", f"Use one of {', '.join(NAMES)}.")
    return cast("Client", import_module(f"holdfast_cli.hooks.clients.{name.replace('-', '_')}").CLIENT)


def text_in(payload: Mapping[str, object], *names: str) -> str:
    """Return the first of some members that is a text with anything in it, "" if none is."""
    values = (payload.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def session_in(payload: Mapping[str, object], *names: str) -> str:
    """Return the id of the session, which every call must name.

    Raises:
        InvalidInput: it is not there.

    """
    if session := text_in(payload, *names):
        return session
    raise InvalidInput(
        "The call of a hook names no session.", "Install the hooks anew, for the client that runs them."
    )


Source = Literal["startup", "resume", "clear", "compact"]


def source_in(payload: Mapping[str, object]) -> Source:
    """Return why a session starts; a fork continues another session, and anything unknown is a start."""
    match payload.get("source"):
        case "resume" | "fork":
            return "resume"
        case "clear":
            return "clear"
        case "compact":
            return "compact"
    return "startup"


def call_in(client: str, event: Event, payload: Mapping[str, object], answer: str = "") -> HookCall:
    """Return the call of a payload whose members are named as Claude Code names them.

    `answer` is the member that has the last message of the assistant at a stop.

    Raises:
        InvalidInput: it names no session.

    """
    agent = text_in(payload, "agent_id")
    return HookCall(
        client=client,
        event=event,
        session=session_in(payload, "session_id"),
        cwd=text_in(payload, "cwd"),
        # The transcript of a sub-agent is a file of its own.
        transcript=text_in(payload, *(("agent_transcript_path",) if agent else ()), "transcript_path"),
        prompt=text_in(payload, "prompt") if event == "prompt" else "",
        answer=text_in(payload, answer) if event == "stop" else "",
        source=source_in(payload) if event == "session-start" else "",
        agent=agent,
    )


def cut(text: str, limit: int) -> str:
    """Return a text with at most `limit` UTF-16 units, as clients count, cut at the end of a line."""
    size = len(text) + sum(character > "\uffff" for character in text)
    if size <= limit:
        return text
    end = "\n[… cut: the client takes no more]"
    units, kept = 0, 0
    for character in text:
        units += 1 + (character > "\uffff")
        if units > limit - len(end):
            break
        kept += 1
    kept = max(text.rfind("\n", 0, kept + 1), 0) or kept
    return text[:kept] + end


def document(members: Mapping[str, object]) -> str:
    """Return an answer as JSON in ASCII, which no locale garbles; halves of characters become "?"."""
    whole = json.dumps(members, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
    return json.dumps(json.loads(whole))


def context_answer(native: str | None, text: str, message: str) -> str:
    """Return the answer of a text as context, in the form that Claude Code brought up; "" for no answer.

    `native` is the client's name of the event, if that event takes a text.
    """
    members: dict[str, object] = {}
    if native and text:
        members["hookSpecificOutput"] = {"hookEventName": native, "additionalContext": text}
    if message:
        members["systemMessage"] = message
    return document(members) if members else ""
