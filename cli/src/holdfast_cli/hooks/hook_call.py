"""`HookCall`: what a client says of an event, in the form that all clients share."""

from typing import Literal, NamedTuple, get_args

Event = Literal["session-start", "prompt", "stop", "before-compaction", "session-end"]
"""The events, by their names on the command line; the stop of a sub-agent is "stop" with an `agent`."""

EVENTS: tuple[str, ...] = get_args(Event)


class HookCall(NamedTuple):
    """One event of a session, as a client reports it on stdin; what it leaves out is "".

    `client` is "claude-code", "codex", "cursor" or "gemini"; `session` is its id of the session, `cwd` the
    folder that it works in, and `transcript` the path of its transcript. `prompt` is what the person submits,
    `answer` the last message of the assistant where a client tells it at a stop, `source` why a session
    starts ("startup", "resume", "clear" or "compact"), and `agent` the id of a sub-agent.
    """

    client: str
    event: Event
    session: str
    cwd: str
    transcript: str = ""
    prompt: str = ""
    answer: str = ""
    source: str = ""
    agent: str = ""


class HookOptions(NamedTuple):
    """The command line of a hook: the event and the client by name, and whose memory it works on.

    With `wait`, a stop imports before it returns, for clients that do not wait for it.
    """

    event: str = ""
    client: str = ""
    db: str = ""
    tenant: str = ""
    user: str = ""
    wait: bool = False
