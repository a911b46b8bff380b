"""Errors of a handle for an argument or a name that it does not have, with the one that is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, iscoroutinefunction, isfunction, signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from holdfast.errors import InvalidInput

C = TypeVar("C", bound=Callable[..., Any])

# Arguments of ours, with the words that other libraries have for them.
_ARGUMENTS = {
    "limit": "k top_k n count num_results max_results size last_n",
    "query": "q question input text prompt message",
    "content": "text message body",
    "text": "content memory message messages data value",
    "user": "user_id username",
    "agent": "agent_id agent_name",
    "tenant": "tenant_id app_id org_id",
    "project": "project_id namespace collection group_id",
    "id": "chat_id thread_id session_id conversation_id run_id",
    "chat": "chat_id thread_id session_id conversation_id session thread",
    "what": "id memory_id record_id key",
    "meta": "metadata",
    "where": "filter filters metadata meta",
    "kind": "type memory_type",
    "min_score": "threshold score_threshold",
    "since": "start start_date from_date after",
    "until": "end end_date to_date before",
    "at": "timestamp created_at",
    "budget": "max_tokens token_limit",
    "system": "system_prompt instructions",
    "llm": "model",
    "embed": "embedder embedding embeddings",
    "location": "path file url db database",
}
# Names of ours, the same way; the first that a handle has is meant.
_NAMES = {
    "append": "add add_message add_messages add_memory save_context",
    "remember": "add add_memory add_episode store save put aput insert",
    "recall": "search asearch query retrieve similarity_search get_relevant_documents",
    "records": "get_all list list_memories",
    "history": "get_messages messages",
    "changes": "history",
    "prompt": "get_context get_user_context load_memory_variables",
    "replace": "update modify",
    "retract": "delete",
    "retract_all": "delete_all clear",
    "chat": "thread session add_session create_thread",
}
_SCOPE_PARTS = ("tenant", "user", "agent", "project", "team")


class UnknownArgument(InvalidInput, TypeError):
    """A method has no argument of this name; nothing was done. The message names the one that is meant."""


class Handle:
    """The base of handles: methods refuse unknown arguments, and name the one that is meant."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if isfunction(method) and (name == "__init__" or not name.startswith("_")):
                setattr(cls, name, _check_arguments(method))

    # For a type checker it would make every name one that is there.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            kind = type(self)
            own = next((candidate for candidate in _meant(name, _NAMES) if hasattr(kind, candidate)), None)
            if own is None:
                # Raises the error of Python or of a property.
                return object.__getattribute__(self, name)
            raise AttributeError(f"{kind.__name__} has no {name!r}. Use {own!r}.", name=name, obj=self)


def _check_arguments(method: C) -> C:
    """Return a method that names the argument that is meant where it is called with an unknown one."""

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        try:
            return method(*args, **kwargs)
        except TypeError:
            check_arguments(method, kwargs)
            raise

    @wraps(method)
    async def call_and_await(*args: object, **kwargs: object) -> object:
        try:
            return await method(*args, **kwargs)
        except TypeError:
            check_arguments(method, kwargs)
            raise

    return cast("C", call_and_await if iscoroutinefunction(method) else call)


def check_arguments(method: Callable[..., object], given: Iterable[str]) -> None:
    """Raise UnknownArgument for the first argument, given by its name, that a method does not have."""
    takes = signature(method).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in takes.values()):
        return
    by_place = [name for name, parameter in takes.items() if parameter.kind is Parameter.POSITIONAL_ONLY]
    own = [name for name in takes if name not in ("self", *by_place)]
    unknown = next((name for name in given if name not in own), None)
    if unknown is not None:
        owner, _, name = method.__qualname__.rpartition(".")
        called = owner if name == "__init__" else name
        first = f"Pass it first, without its name: {called}(…)."
        todo = first if unknown in by_place else _advice(unknown, own)
        raise UnknownArgument(f"{called}() has no argument {unknown!r}.", todo) from None


def _advice(unknown: str, own: list[str]) -> str:
    # Only for those who err.
    from difflib import get_close_matches

    meant = _meant(unknown, _ARGUMENTS)
    same = [word for word in meant if word in own]
    if not same and (part := next((word for word in (unknown, *meant) if word in _SCOPE_PARTS), None)):
        return f"It is one of the handle: `memory.scoped({part}=…)`."
    if near := same or get_close_matches(unknown, own, 1):
        return f"Did you mean {near[0]!r}?"
    return f"Use {', '.join(own)}." if own else "Leave it out."


def _meant(word: str, ours: Mapping[str, str]) -> list[str]:
    """Return our names for a word of another library."""
    return [name for name, theirs in ours.items() if word in theirs.split()]
