"""The Microsoft Agent Framework: a history provider and a context provider.

>>> providers = [HoldfastHistoryProvider(memory), HoldfastContextProvider(memory)]   # doctest: +SKIP
>>> agent = Agent(client=client, context_providers=providers)                        # doctest: +SKIP
>>> await agent.run("Hello", session=agent.create_session(session_id="monday"))      # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput, MissingExtra
from holdfast.integrations.framework_keys import chat_id
from holdfast.integrations.off_loop import off_loop
from holdfast.integrations.opaque_items import check_type, read_message, restoring
from holdfast.integrations.session_items import SessionItems
from holdfast.port import formats, prompts
from holdfast.types import Message, Role, check_count

try:
    from agent_framework import ContextProvider, HistoryProvider
    from agent_framework import Message as FrameworkMessage
except ImportError as error:
    raise MissingExtra.of("agent-framework") from error

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext, SupportsAgentRun

    from holdfast import Memory
    from holdfast.port.handles import RecallOptions
    from holdfast.port.items import Payload

_FRAMEWORK = "agent-framework"
_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system", "tool": "tool"}
# What is stored in the message but not shown: thoughts, what was spent, questions to the user.
_UNSHOWN = ("text_reasoning", "usage", "function_approval_request", "function_approval_response")


class HoldfastHistoryProvider(HistoryProvider):
    """Store the history of each session in a chat of a memory.

    Each message is one of the chat `agent-framework/SESSION`, so that recall, compaction and learning work on
    it; the framework's own form of it is stored in `raw` and comes back equal. The session's state has
    nothing of it, so a session is small however long it is. Messages that are handed over again, as whole
    transcripts are, are stored once. All methods are safe for concurrent tasks, threads and processes.

    Args:
        memory: the memory of the chats.
        source_id: the name of the provider in an agent.
        budget: the tokens of what is loaded: the newest messages, calls with their results, and the summaries
            of those before (see `Chat.compact`); None for all messages.
        load_messages: whether a run is given the history.
        store_inputs: whether the messages to the agent are stored.
        store_outputs: whether its answers are stored.
        store_context_messages: whether what other providers add is stored.
        store_context_from: the names of the only providers whose messages are stored then.

    Raises:
        InvalidInput: `memory` is not a memory, or the budget is negative.

    """

    def __init__(
        self,
        memory: Memory,
        source_id: str = "holdfast_history",
        *,
        budget: int | None = None,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_outputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_outputs=store_outputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
        )
        check_provider(memory)
        self.memory, self._budget = memory, None if budget is None else check_count(budget, "budget")

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, object] | None = None, **_: object
    ) -> list[FrameworkMessage]:
        """Return the messages of a session, oldest first; none of None.

        Raises:
            Damaged: a stored message is not one of the framework any more.

        """
        del state
        if session_id is None:
            return []
        return await off_loop(self.memory, self._load, _chat(session_id))

    def _load(self, chat_id: str) -> list[FrameworkMessage]:
        if self._budget is None:
            return SessionItems(self.memory, chat_id, _FRAMEWORK).read(_framework_message)
        # The framework's own form of a message is shown, which is whole.
        policy = prompts.unshortened(self.memory, self._budget)
        window = self.memory.chat(chat_id).window(policy=policy)
        summaries = [prompts.summary_text(summary) for summary in window.summaries]
        shown = [message for message in window.messages if message.meta.get(_FRAMEWORK) == "item"]
        return [FrameworkMessage("user", [text]) for text in summaries] + list(map(_framework_message, shown))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[FrameworkMessage],
        *,
        state: dict[str, object] | None = None,
        **_: object,
    ) -> None:
        """Append the messages that the session does not end with, all or none.

        Raises:
            InvalidInput: there is no session, or one is not a message; none was stored.

        """
        del state
        await off_loop(self.memory, _save, self.memory, session_id, messages)


class HoldfastContextProvider(ContextProvider):
    """Show each run what is known, and what is recalled for the newest message of the user.

    What is known are constraints, soul, profile and facts, as in `Chat.prompt`: they are added to the
    instructions. What was recalled is a message before the input, framed as data, without what the history
    shows already; so the provider stands behind that of the history. What was said is stored in the chat of
    the session as `HoldfastHistoryProvider` does, unless the agent has one of this memory.

    Args:
        memory: what to recall from.
        source_id: the name of the provider in an agent.
        max_tokens: the tokens of what is recalled, as the memory counts them.
        known: whether to show what is known.
        store: whether to store what was said.
        options: options of `Memory.recall`, such as `limit`, `sources`, `kinds`, `where` or `min_score`.

    Raises:
        InvalidInput: `memory` is not a memory, or the number of tokens is negative.

    """

    def __init__(
        self,
        memory: Memory,
        source_id: str = "holdfast",
        *,
        max_tokens: int = 1_000,
        known: bool = True,
        store: bool = True,
        options: RecallOptions | None = None,
    ) -> None:
        super().__init__(source_id)
        check_provider(memory)
        self.memory, self._max_tokens = memory, check_count(max_tokens, "max_tokens")
        self._known, self._store, self._options = known, store, dict(options or {})

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, object],
    ) -> None:
        """Add the knowledge block to the instructions, and the recall block to the messages."""
        del agent, session, state
        said = [_message(message) for message in context.get_messages(include_input=True)]
        shown = await off_loop(
            self.memory,
            prompts.known_and_recalled,
            self.memory,
            _chat(context.session_id or ""),
            said,
            self._max_tokens,
            self._options,
            known=self._known,
        )
        if shown.known:
            context.extend_instructions(self.source_id, shown.known)
        if shown.recalled:
            context.extend_messages(self, [FrameworkMessage("user", [shown.recalled])])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, object],
    ) -> None:
        """Store the conversation, unless a history provider of the memory does."""
        del session, state
        if not self._store or any(map(self._is_history, getattr(agent, "context_providers", ()))):
            return
        answered = list(context.response.messages) if context.response else []
        said = [*context.input_messages, *answered]
        await off_loop(self.memory, _save, self.memory, context.session_id, said)

    def _is_history(self, other: object) -> bool:
        return isinstance(other, HoldfastHistoryProvider) and other.memory.scope == self.memory.scope


def _chat(session_id: str) -> str:
    return chat_id(_FRAMEWORK, session_id)


def _save(memory: Memory, session_id: str | None, messages: Sequence[FrameworkMessage]) -> None:
    if session_id is None:
        raise InvalidInput("The messages belong to no session.", "Run the agent with a session.")
    given = [_message(message) for message in messages]
    items = SessionItems(memory, _chat(session_id), _FRAMEWORK)
    items.append(_fresh(items.newest(len(given))[::-1], given))


def _fresh(stored: Sequence[Payload], given: Sequence[Message]) -> Sequence[Message]:
    """Return the messages that follow those that are the newest stored ones, as in the framework's own.

    A single message of the user without an id is rather said again than handed over again.
    """
    before, now = [_identity(message) for message in stored], [_identity(message) for message in given]
    for count in range(min(len(before), len(now)), 0, -1):
        if before[-count:] == now[:count] and (count > 1 or given[0].role != "user" or "id" in now[0]):
            return given[count:]
    return given


def _identity(message: Message | Payload) -> dict[str, object]:
    raw = message.raw or {}
    id = raw.get("message_id")
    return {"role": raw.get("role"), "contents": raw.get("contents")} if id is None else {"id": id}


def _framework_message(message: Message | Payload) -> FrameworkMessage:
    with restoring(message, "none of the Agent Framework", "agent-framework-core"):
        return FrameworkMessage.from_dict(dict(message.raw or {}))


def _message(message: object) -> Message:
    """Return the message to store, with the framework's own form of it in `raw`."""
    given = check_type(message, FrameworkMessage, "A message", "Pass messages of the Agent Framework.")
    raw = given.to_dict()
    role = _ROLES.get(given.role, "assistant")
    form = {"role": role, "content": list(_parts(raw.get("contents")))}
    return read_message(form, raw) or Message(role, "[message]", raw=raw)


def _parts(contents: object) -> Iterator[Mapping[str, object]]:
    """Yield the contents of a message as parts in the forms of OpenAI and Anthropic."""
    for content in formats.blocks_of(contents):
        kind = content.get("type")
        if kind == "text":
            yield content
        elif kind == "function_call":
            id, name = content.get("call_id"), content.get("name")
            yield {"type": "tool_use", "id": id, "name": name, "input": content.get("arguments")}
        elif kind == "function_result":
            result = content.get("result")
            text = result if isinstance(result, str) else str(content.get("exception") or "")
            yield {"type": "tool_result", "tool_use_id": content.get("call_id"), "content": text}
        elif kind in ("data", "uri", "hosted_file"):
            # The bytes of `data` stand in its address.
            address = None if kind == "data" else content.get("uri") or content.get("file_id")
            media = str(content.get("media_type") or "")
            part = "image" if media.startswith("image/") else "document"
            yield {"type": part, "url": address, "media_type": media or "file"}
        elif kind not in _UNSHOWN:
            yield {"type": kind, "name": content.get("tool_name") or content.get("message")}
