"""The coding agents that can call hooks: their input, their answers, and the files that list their hooks."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import InvalidInput, shown
from holdfast_cli.hooks.hook_call import Event, HookCall

LIMIT = 10_000
"""The characters that clients take as context: more they write to a file, and show its beginning."""
_TAKE_TEXT = ("session-start", "prompt")  # the events that take a text for the model
# A fork continues another session; anything unknown is a start.
_SOURCES = {"resume": "resume", "fork": "resume", "clear": "clear", "compact": "compact"}


class NativeHook(NamedTuple):
    """A hook of a client: its event, the client's own name of the event, and the members of its entry."""

    event: Event
    native: str
    timeout: int
    """In the unit of the client."""
    members: tuple[tuple[str, object], ...] = ()


class Client(NamedTuple):
    """A coding agent that reports events and is answered as Claude Code has brought it up.

    `folder` is where its configuration is, below the user's home or the project; `home_variable` the variable
    of the environment that names it elsewhere.
    """

    name: str
    title: str
    hooks: tuple[NativeHook, ...]
    folder: str
    user_file: str
    project_file: str = "hooks.json"
    shared: bool = True
    """Whether the project's file is committed, so that others run it as well."""
    grouped: bool = True
    """Whether hooks stand in groups with a matcher (`{"hooks": [{"type": "command", …}]}`)."""
    home_variable: str = ""
    version: tuple[tuple[str, object], ...] = ()
    """The members that a new file of hooks must have."""
    last_message: str = "last_assistant_message"
    """The member of a stop event with the last message of the assistant."""
    nothing: str = "{}"
    """The answer that it demands where there is nothing to say."""
    session: tuple[str, ...] = ("session_id",)
    """The members that may hold the id of the session."""
    sessions: tuple[str, str] = ("", "")
    """The folder of its sessions within its own, and their files there, if these name their projects."""

    def folder_in(self, home: Path) -> Path:
        """Return the folder of the user's configuration."""
        path = os.environ.get(self.home_variable, "") if self.home_variable else ""
        return Path(path) if path else home / self.folder

    def earlier_sessions(self, home: Path) -> tuple[Path, int]:
        """Return the folder of the sessions that were held before, and how many there are."""
        place, pattern = self.sessions
        folder = self.folder_in(home) / place
        return folder, sum(1 for _ in folder.glob(pattern)) if pattern else 0

    def parse(self, event: Event, payload: Mapping[str, object]) -> HookCall:
        """Read the call of a hook from the JSON that the client writes to stdin.

        Raises:
            InvalidInput: it names no session, or Cursor wrote it, which runs the hooks of Claude Code too.

        """
        if self.name == "claude-code" and "cursor_version" in payload:
            todo = "Use `holdfast install cursor`, and switch off third-party hooks in Cursor."
            raise InvalidInput("Cursor called the hook of Claude Code, whose settings it reads too.", todo)
        if not (session := _text_in(payload, *self.session)):
            todo = "Install the hooks anew, for the client that runs them."
            raise InvalidInput("The call of a hook names no session.", todo)
        agent, prompt = self._agent_in(payload), _text_in(payload, "prompt")
        if self.name == "gemini" and prompt.startswith("<hook_context>"):
            # Without a terminal, the context of a session's start stands before the first prompt.
            from holdfast_cli.formats.gemini import without_contexts

            prompt = without_contexts(prompt)
        source = _SOURCES.get(_text_in(payload, "source"), "startup")
        return HookCall(
            client=self.name,
            event=event,
            session=session,
            cwd=_text_in(payload, "cwd") or _root(payload),
            transcript=self._transcript_in(payload, agent),
            prompt=prompt if event == "prompt" else "",
            answer=_text_in(payload, self.last_message) if event == "stop" else "",
            source=source if event == "session-start" else "",
            agent=agent,
        )

    def answer(self, event: Event, text: str, message: str = "") -> str:
        """Return the answer to write to stdout: `text` is for the model, `message` for the person.

        Where an event takes neither, it is the empty answer that the client demands.
        """
        members: dict[str, object] = {}
        if text and event in _TAKE_TEXT:
            native = next(hook.native for hook in self.hooks if hook.event == event)
            context = {"hookEventName": native, "additionalContext": _cut(text)}
            members["hookSpecificOutput"] = context
        if message:
            members["systemMessage"] = message
        return _document(members) if members else self.nothing

    def _agent_in(self, payload: Mapping[str, object]) -> str:
        return _text_in(payload, "agent_id")

    def _transcript_in(self, payload: Mapping[str, object], agent: str) -> str:
        # That of a sub-agent is a file of its own.
        return _text_in(payload, *(("agent_transcript_path",) if agent else ()), "transcript_path")


class _Cursor(Client):
    """Cursor, which has names of its own, and shows the person nothing."""

    __slots__ = ()

    def _agent_in(self, payload: Mapping[str, object]) -> str:
        agent = _text_in(payload, "subagent_id", "agent_id")
        if not agent and payload.get("hook_event_name") == "subagentStop":
            return _text_in(payload, "subagent_type", "generation_id")
        return agent

    def _transcript_in(self, payload: Mapping[str, object], agent: str) -> str:
        # The command line does not name its own, and early versions wrote plain text.
        transcript = super()._transcript_in(payload, agent)
        session = _text_in(payload, *self.session)
        if transcript or agent or not session.replace("-", "").isalnum():
            return transcript if transcript.endswith(".jsonl") else ""
        folders = (Path.home() / ".cursor" / "projects").glob("*/agent-transcripts")
        names = (f"{session}.jsonl", f"{session}/{session}.jsonl")
        paths = (folder / name for folder in folders for name in names)
        return str(next(filter(Path.is_file, paths), ""))

    def answer(self, event: Event, text: str, message: str = "") -> str:  # noqa: ARG002 - see above
        goes_on: dict[str, object] = {"continue": True} if event == "prompt" else {}
        takes_text = text and event in _TAKE_TEXT
        return _document(goes_on | ({"additional_context": _cut(text)} if takes_text else {}))


_CLAUDE_CODE = Client(
    name="claude-code",
    title="Claude Code",
    hooks=(
        NativeHook("session-start", "SessionStart", 10),
        NativeHook("prompt", "UserPromptSubmit", 10),
        NativeHook("stop", "Stop", 120, (("async", True),)),
        NativeHook("stop", "SubagentStop", 120, (("async", True),)),
        NativeHook("before-compaction", "PreCompact", 10),
        # All hooks of this event share 1.5 seconds, unless one asks for more; a busy machine needs over 5.
        NativeHook("session-end", "SessionEnd", 30),
    ),
    folder=".claude",
    user_file="settings.json",
    project_file="settings.local.json",
    shared=False,
    home_variable="CLAUDE_CONFIG_DIR",
    sessions=("projects", "*/*.jsonl"),
    nothing="",
)
# It runs hooks only after the person trusts them. At a stop anything that is not JSON is an error.
_CODEX = Client(
    name="codex",
    title="Codex",
    hooks=(
        NativeHook("session-start", "SessionStart", 10),
        NativeHook("prompt", "UserPromptSubmit", 10),
        NativeHook("stop", "Stop", 30),
        NativeHook("stop", "SubagentStop", 30),
        NativeHook("before-compaction", "PreCompact", 10),
        # More than 3 seconds are refused.
        NativeHook("session-end", "SessionEnd", 3),
    ),
    folder=".codex",
    user_file="hooks.json",
    home_variable="CODEX_HOME",
    sessions=("sessions", "**/*.jsonl"),
)
_CURSOR = _Cursor(
    name="cursor",
    title="Cursor",
    hooks=(
        NativeHook("session-start", "sessionStart", 10),
        NativeHook("prompt", "beforeSubmitPrompt", 10),
        NativeHook("stop", "stop", 30),
        NativeHook("stop", "subagentStop", 30),
        NativeHook("before-compaction", "preCompact", 10),
        NativeHook("session-end", "sessionEnd", 5),
    ),
    folder=".cursor",
    user_file="hooks.json",
    grouped=False,
    version=(("version", 1),),
    last_message="",
    session=("conversation_id", "session_id"),
)
# Its timeouts are in milliseconds.
_GEMINI = Client(
    name="gemini",
    title="Gemini CLI",
    hooks=(
        NativeHook("session-start", "SessionStart", 10_000, (("name", "holdfast-session-start"),)),
        NativeHook("prompt", "BeforeAgent", 10_000, (("name", "holdfast-prompt"),)),
        NativeHook("stop", "AfterAgent", 30_000, (("name", "holdfast-stop"),)),
        NativeHook("before-compaction", "PreCompress", 10_000, (("name", "holdfast-before-compaction"),)),
        NativeHook("session-end", "SessionEnd", 5_000, (("name", "holdfast-session-end"),)),
    ),
    folder=".gemini",
    user_file="settings.json",
    project_file="settings.json",
    last_message="prompt_response",
    sessions=("tmp", "*/chats/*.json*"),
)
_CLIENTS = {client.name: client for client in (_CLAUDE_CODE, _CODEX, _CURSOR, _GEMINI)}
NAMES = tuple(_CLIENTS)
"""The clients whose hooks are known, by their names on the command line."""
ONLY_SERVER: tuple[str, ...] = ("claude-desktop", "vscode")
"""The clients without hooks, which get the entry of the MCP server alone."""


def client_of(name: str) -> Client:
    """Return the client of a name.

    Raises:
        InvalidInput: no client is called so.

    """
    if name not in _CLIENTS:
        raise InvalidInput(f"{shown(name)} is no client with hooks.", f"Use one of {', '.join(NAMES)}.")
    return _CLIENTS[name]


def _text_in(payload: Mapping[str, object], *names: str) -> str:
    """Return the first non-empty text among some members, "" if there is none."""
    values = (payload.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def _root(payload: Mapping[str, object]) -> str:
    """Return the first folder of the workspace."""
    roots = payload.get("workspace_roots")
    return roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""


def _cut(text: str) -> str:
    """Return a text with at most `LIMIT` UTF-16 units, as clients count, cut at the end of a line."""
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * LIMIT:
        return text
    end = "\n[… cut: the client takes no more]"
    length = len(units[: 2 * (LIMIT - len(end))].decode("utf-16-le", "ignore"))
    length = max(text.rfind("\n", 0, length + 1), 0) or length
    return text[:length] + end


def _document(members: Mapping[str, object]) -> str:
    """Return an answer as JSON in ASCII, which no locale garbles; halves of characters become "?"."""
    whole = json.dumps(members, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
    return json.dumps(json.loads(whole))
