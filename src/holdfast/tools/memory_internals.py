"""Access of tools to the internals of a `Memory`, which other providers do not have."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from holdfast.contract import Provider, Session
from holdfast.kinds import Kind
from holdfast.prompt.prompt_cache import seen_of
from holdfast.store import sessions
from holdfast.store.database import Database
from holdfast.text.tokens import CountTokens
from holdfast.types import MAX_COUNT, Hit, Scope
from holdfast.types.references import noted, split_space

_REMEMBERED = 50  # references that are stored for one answer
_NOTING = threading.Lock()  # held while the stored references are read and written


@runtime_checkable
class MemoryInternals(Protocol):
    """The state that all handles on one database share; see `holdfast.runtime`."""

    kinds: Mapping[str, Kind]
    count_tokens: CountTokens
    events: Any
    prompts: Any
    embedder: Any
    clock: Callable[[], datetime]

    def database_of(self, scope: Scope) -> Database:
        """Return the database as a scope may use it."""

    def now(self) -> int:
        """Return the time in microseconds since the epoch."""


def unwrap(provider: object) -> Any:
    """Return a provider without the wrappers of `holdfast.providers.tracing`."""
    return inspect.unwrap(cast("Any", provider))


def internals_of(provider: object) -> MemoryInternals | None:
    """Return the internals of a `Memory`; None for other providers and the null memory."""
    internals = getattr(unwrap(provider), "_runtime", None)
    return internals if isinstance(internals, MemoryInternals) else None


def is_covered(provider: Provider, chat: str) -> bool:
    """Return whether an agent may read a chat: whether recall in its memory covers it."""
    internals, scope = internals_of(provider), getattr(provider, "scope", None)
    if internals is None or not isinstance(scope, Scope) or not scope.agent:
        return True
    return sessions.is_of_agent(internals.database_of(scope), scope, chat)


def further_memories(provider: Provider) -> dict[str, Any]:
    """Return the memories that recall covers beside its own, nearest first, by the names of their spaces."""
    if internals_of(provider) is None:
        return {}
    memory = unwrap(provider)
    own = memory.scope
    # `scoped` would deny it, but these memories are only read, where recall reads too.
    return {own.reference(space): memory._fixed(own.seen(space)) for space in own.spaces[1:]}  # noqa: SLF001


def own_space(provider: Provider) -> str | None:
    """Return the name of the space that a memory writes to, where it reads several; None for others."""
    scope = getattr(unwrap(provider), "scope", None)
    return scope.reference(scope.space) if isinstance(scope, Scope) and scope.is_layered else None


class InView(NamedTuple):
    """The part of a chat that a model sees anyway: what the window shows, and the turn going on."""

    space: str = ""
    chat: str = ""
    # The numbers of messages, and the ids of summaries.
    seen: frozenset[int | str] = frozenset()
    # The number of the first message of the unanswered turn, all of which is in view.
    turn: int = MAX_COUNT

    def has(self, hit: Hit) -> bool:
        """Return whether a hit is in this part."""
        is_summary, is_here = hit.source == "summary", (hit.space, hit.chat) == (self.space, self.chat)
        is_seen = hit.id in self.seen if is_summary else hit.seq in self.seen or hit.seq >= self.turn
        return hit.source != "record" and is_here and is_seen


def in_view(provider: Provider, chat: Session) -> InView:
    """Return what the model of a chat sees of it: by its last prompt in this process, or its usual window."""
    scope, window = getattr(unwrap(provider), "scope", None), chat.window()
    turn, internals = MAX_COUNT, internals_of(provider)
    if window.messages and (window.messages[-1].role != "assistant" or window.messages[-1].calls):
        requests = [message.seq for message in window.messages if message.role == "user"]
        turn = requests[-1] if requests else window.messages[0].seq
    seen = internals.prompts.seen.get((cast("Scope", scope).space, chat.id)) if internals else None
    space = scope.reference(scope.space) if isinstance(scope, Scope) else ""
    return InView(space, chat.id, seen_of(window) if seen is None else seen, turn)


def note_shown(provider: Provider, chat: Session, what: Sequence[str]) -> None:
    """Store references that a chat was shown, beside those of its last prompt.

    The answer that follows is then not learned as new. Only a `Memory` of ours stores them.
    """
    internals = internals_of(provider)
    if internals is not None and what:
        scope = cast("Any", provider).scope
        space, names = scope.space, [noted(*split_space(reference, scope), scope) for reference in what]
        with _NOTING:
            shown = dict.fromkeys((*internals.prompts.last_prompt(space, chat.id).shown, *names))
            internals.prompts.show(space, chat.id, tuple(shown)[-_REMEMBERED:])
