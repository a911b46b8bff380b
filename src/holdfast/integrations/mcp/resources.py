"""Resources, prompts and completions of the MCP server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

from holdfast.contract import Capability, capabilities
from holdfast.errors import HoldfastError, InvalidInput, MissingExtra
from holdfast.port.tools import ORIGIN, Actions, as_item, as_json

try:
    import anyio.to_thread
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
    from mcp.server.mcpserver.resources import ResourceSecurity
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        INVALID_PARAMS,
        Completion,
        CompletionArgument,
        CompletionContext,
        PromptReference,
        ResourceTemplateReference,
    )
    from pydantic import Field
except ImportError as error:
    raise MissingExtra.of("mcp") from error

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from holdfast.contract import Provider

WHOLE = 20_000  # tokens of a resource
_PROMPTED = 4_000  # tokens of memory in a prompt
MESSAGES = 50  # the newest ones of a session
_FACTS = 500  # the newest ones
_COMPLETIONS = 100  # the limit of the protocol
_LOOKED_AT = 1_000  # the newest sessions, searched for completions
_SUMMARISED = 20  # the newest sessions, whose summaries are completed
_ANY = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False)  # ids are not paths
P = ParamSpec("P")


def add(server: MCPServer[object], provider: Provider, actions: Actions) -> None:
    """Add the resources, prompts and completions of a memory to a server with the tools of `actions`."""
    can = capabilities(provider)
    reading = _Content(provider, actions)
    _add_resources(server, reading, can)
    _add_prompts(server, reading, can)
    _add_completions(server, reading, can)


class _Content:
    """The content of prompts, and of resources, which have the names of its methods."""

    def __init__(self, provider: Provider, offered: Actions) -> None:
        # Its capabilities beyond the core were checked.
        self.provider: Any = provider
        self.offered = offered
        self.actions = Actions(provider, read_only=True, max_tokens=WHOLE)
        self.briefly = Actions(provider, read_only=True, max_tokens=_PROMPTED)

    def status(self) -> str:
        return _json(self.offered.status())

    def profile(self) -> str:
        return _json(self.actions.profile())

    def constraints(self) -> str:
        return _json(self.actions.constraints())

    def facts(self) -> str:
        records = self.provider.records(kind="fact")
        left_out = len(records) - _FACTS
        note = {"note": f"{left_out} older ones are left out; `recall` finds them."} if left_out > 0 else {}
        return _json({"origin": ORIGIN, "facts": [as_item(record) for record in records[-_FACTS:]], **note})

    def record(self, id: str) -> str:
        return _json(self.actions.expand(id))

    def session(self, id: str, limit: int = MESSAGES) -> str:
        return _json(self.actions.search_sessions(session=id, limit=limit))

    def message(self, id: str) -> str:
        return _json(self.actions.expand(id))

    def summary(self, id: str) -> str:
        # Any chat finds every summary.
        placed = self.provider.chat("any").describe(id)
        behind = self.actions.expand(id)
        return _json(
            {
                "origin": ORIGIN,
                "summary": as_item(placed.summary),
                "parents": placed.parents,
                "items": behind.items,
                "cursor": behind.cursor,
            }
        )


def _json(result: object) -> str:
    return json.dumps(as_json(result), ensure_ascii=False, indent=1)


# Resources


def _add_resources(server: MCPServer[object], reading: _Content, can: frozenset[Capability]) -> None:
    every: tuple[tuple[Capability | None, str, str, Callable[..., str]], ...] = (
        (None, "status", "Which memory this is, and what it can do.", reading.status),
        ("profile", "profile", "Who the user is, and who the agent is to them.", reading.profile),
        ("profile", "constraints", "What always holds.", reading.constraints),
        ("records", "facts", "What is known, the oldest first.", reading.facts),
        ("records", "facts/{id}", "One thing that is known, whole.", reading.record),
        ("sessions", "sessions/{id}{?limit}", "The newest messages of a session.", reading.session),
        ("sessions", "messages/{id}", "A message and those after it, or several.", reading.message),
        ("explore", "summary/{id}", "A summary, and what it was made of.", reading.summary),
    )
    for needed, path, description, read in every:
        if needed is None or needed in can:
            server.resource(
                f"memory://{path}",
                name=read.__name__,
                title=read.__name__.capitalize(),
                description=description,
                mime_type="application/json",
                security=_ANY,
            )(_with_resource_errors(read))


def _with_resource_errors(read: Callable[P, str]) -> Callable[P, str]:
    @wraps(read)
    def checked(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return read(*args, **kwargs)
        except InvalidInput as error:
            raise ResourceNotFoundError(str(error)) from error
        except HoldfastError as error:
            raise ResourceError(str(error)) from error

    return checked


# Prompts


def _add_prompts(server: MCPServer[object], reading: _Content, can: frozenset[Capability]) -> None:
    if "recall" in can:

        @server.prompt(title="Recall a topic")
        def recall_topic(topic: Annotated[str, Field(description="what to recall")]) -> str:
            """Bring what memory holds about a topic into the conversation."""
            with request_errors():
                page = reading.briefly.recall(topic)
            return (
                "Here is what memory holds about a topic. "
                f"Draw on it, and `recall` more if it is not enough.\n{_frame(page)}"
            )

    if "sessions" in can:

        @server.prompt(title="Continue a conversation")
        def continue_conversation(session: Annotated[str, Field(description="id of a session")]) -> str:
            """Go on with an earlier conversation where it ended."""
            with request_errors():
                page = reading.briefly.search_sessions(session=session, limit=MESSAGES)
            return (
                "Let us go on with an earlier conversation. "
                f"Its end is here; say in two sentences where we were.\n{_frame(page)}"
            )

    if "records" in can:
        writes = "update" in {action.name for action in reading.offered.available()}

        @server.prompt(title="Review memory")
        def review_memory() -> str:
            """Go through what is known together with the user, and mend it."""
            with request_errors():
                known = reading.facts()
            mend = "Then `update` or `forget` what I confirm, and nothing else." if writes else ""
            return (
                "Go through what memory holds about me: name what contradicts itself, what looks outdated "
                f"and what is there twice, and ask me about each. {mend}\n{_frame(json.loads(known))}"
            )


def _frame(result: object) -> str:
    """Return a result between tags that no text in it can contain."""
    text = json.dumps(as_json(result), ensure_ascii=False).replace("<", "\\u003c")
    return f"<memory>\n{text}\n</memory>"


@contextmanager
def request_errors() -> Iterator[None]:
    """Raise errors of the memory as errors of the request."""
    try:
        yield
    except HoldfastError as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from error


# Completions


def _add_completions(server: MCPServer[object], reading: _Content, can: frozenset[Capability]) -> None:
    # The SDK has no types here.
    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(
        reference: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        _: CompletionContext | None,
    ) -> Completion | None:
        """Return the ids that begin with the given text."""
        of = reference.name if isinstance(reference, PromptReference) else reference.uri
        list_ids = next(
            (ids for needed, names, ids in _COMPLETED if needed in can and (of, argument.name) in names), None
        )
        if list_ids is None:
            return None
        ids = partial(list_ids, reading.provider)
        return await anyio.to_thread.run_sync(lambda: _completion(ids(), argument.value))


def _completion(ids: Iterable[str], begun: str) -> Completion:
    matches = list(islice((id for id in ids if id.startswith(begun)), _COMPLETIONS + 1))
    return Completion(values=matches[:_COMPLETIONS], has_more=len(matches) > _COMPLETIONS)


def _sessions(provider: Any) -> Iterator[str]:
    return (info.id for info in provider.chats(limit=_LOOKED_AT))


def _facts(provider: Any) -> Iterator[str]:
    return (record.id for record in reversed(provider.records()))


def _summaries(provider: Any) -> Iterator[str]:
    """Yield the ids of the summaries in the windows of the newest sessions."""
    for chat in islice(_sessions(provider), _SUMMARISED):
        yield from (summary.id for summary in provider.chat(chat).window().summaries)


_COMPLETED: tuple[tuple[Capability, frozenset[tuple[str, str]], Callable[[Any], Iterator[str]]], ...] = (
    (
        "sessions",
        frozenset({("continue_conversation", "session"), ("memory://sessions/{id}{?limit}", "id")}),
        _sessions,
    ),
    ("records", frozenset({("memory://facts/{id}", "id")}), _facts),
    ("explore", frozenset({("memory://summary/{id}", "id")}), _summaries),
)
