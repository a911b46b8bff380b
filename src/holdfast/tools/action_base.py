"""The base of actions: a memory, a session, permissions, and a limit of tokens."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from holdfast.contract import Provider, Session, capabilities, check_provider
from holdfast.errors import Denied, InvalidInput, shown
from holdfast.text.tokens import estimate_tokens
from holdfast.tools.json_schema import Range, quoted_argument
from holdfast.tools.memory_internals import InView, in_view, internals_of, note_shown
from holdfast.tools.paging import LEAST, Page
from holdfast.tools.permissions import Action, Permissions, available, locked_parts, part_of, takes
from holdfast.types import Record, Writer, check_count

KINDS = ("fact", "finding", "insight", "lesson")
_APART = ("constraint", "note", "file", "feedback")  # kinds with tools of their own, or none
MOST = 50  # items of a result
NO_SESSION = "tools"  # the id of the chat that is opened if none is given; nothing is stored in it
REFUSALS = (LookupError, ValueError, PermissionError)
"""The errors with which a provider refuses a call; ours are among them."""

_INNER = str.maketrans("“”", '""')
Confirm = Callable[[str], bool]
_LIMIT = Range(1, MOST)
Limit = Annotated[int, _LIMIT]
Query = Annotated[str, "2-4 distinctive words or a question"]
Id = Annotated[str, "from a result"]
Cursor = Annotated[str | None, "of the last result, to go on"]


def check_confirm(confirm: Confirm | None) -> Confirm:
    """Return the function that asks the user; None confirms nothing.

    Raises:
        InvalidInput: it is not a function, or has to be awaited.

    """
    todo = "Pass a plain function that returns True or False."
    if confirm is not None and not callable(confirm):
        raise InvalidInput(f"`confirm` is {shown(confirm)}.", todo)
    if inspect.iscoroutinefunction(confirm):
        raise InvalidInput("`confirm` has to be awaited.", todo)
    return confirm or (lambda _: False)


def ask(confirm: Confirm, question: str) -> None:
    """Ask the user about a change of a constraint.

    Raises:
        Denied: the answer is anything else than True.

    """
    if confirm(question) is not True:
        raise Denied(
            "A constraint changes only when the user confirms it, and they were not asked or did not agree.",
            "Ask the user; the application passes on what they say.",
        )


def quoted(text: str) -> str:
    """Return a text in quotes for the user to confirm, with invisible characters and quotes escaped."""
    seen = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return f"“{seen.translate(_INNER)}”"


def kinds_of(provider: Provider) -> tuple[str, ...]:
    """Return the kinds of records that `remember` stores in a memory."""
    internals = internals_of(provider)
    if internals is None:
        return KINDS
    listed = [kind for kind in internals.kinds.values() if not kind.one_per and "agent" in kind.writers]
    return tuple(kind.name for kind in listed if kind.name not in _APART)


class ActionBase:
    """A memory, a session and permissions. A part of `Actions`."""

    def __init__(
        self,
        provider: Provider,
        chat: Session | str | None = None,
        *,
        confirm: Confirm | None = None,
        read_only: bool | str | Iterable[str] = False,
        max_tokens: int = 2_000,
    ) -> None:
        check_provider(provider)
        if check_count(max_tokens, "max_tokens") < LEAST:
            raise InvalidInput(f"A result of {max_tokens} tokens is too small.", f"Allow {LEAST} at least.")
        # A provider does not declare what it can do beyond the core, so its type does not say it.
        self._provider: Any = provider
        opened = NO_SESSION if chat is None else chat
        self._chat: Any = provider.chat(opened) if isinstance(opened, str) else opened
        if not isinstance(getattr(self._chat, "id", None), str):
            raise InvalidInput(f"`chat` is {shown(chat)}.", "Pass a chat, or the id of one.")
        self._session = "" if chat is None else self._chat.id
        self._confirm = check_confirm(confirm)
        self._kinds = kinds_of(provider)
        internals = internals_of(provider)
        self._count = internals.count_tokens if internals else estimate_tokens
        self._cap = max_tokens
        can, locked = capabilities(provider), locked_parts(read_only)
        self._permissions = Permissions(provider, can, locked, self._session, self._kinds)
        self._available = available(self._permissions, type(self))

    def available(self) -> tuple[Action, ...]:
        """Return the actions that are permitted, with those of their parameters that are."""
        return self._available

    def _begin(self, action: str, **arguments: object) -> None:
        """Raise Denied where an action is not permitted, or an argument of it."""
        there = {one.name: {known.name for known in one.parameters} for one in self._available}
        why = "nothing may be written, or this memory cannot do it"
        if action not in there:
            raise Denied(f"`{action}` is not possible here: {why}.", f"There are {', '.join(there)}.")
        for name, value in arguments.items():
            if value is not None and name not in there[action]:
                raise Denied(f"`{action}` takes no `{name}` here: {why}.", "Leave it out.")

    def _writer(self, kind: str, question: str) -> Writer:
        """Return the writer of a record of a kind: for a constraint the user, who has to confirm it.

        Raises:
            Denied: they do not, or the part is read-only.

        """
        if not self._permissions.writes(part_of(kind)):
            raise Denied(f"The part {part_of(kind)!r} is read-only here.", "Leave it as it is.")
        if kind != "constraint":
            return "agent"
        ask(self._confirm, question)
        return "user"

    def _in_chat(self) -> str | None:
        return self._session or None

    def _in_view(self) -> InView:
        """Return what the model sees of its session anyway, which no search has to find."""
        return in_view(self._provider, self._chat) if self._session else InView()

    def _note(self, references: Sequence[str]) -> None:
        """Store what the session was shown, so that it is not learned as new."""
        if self._session:
            note_shown(self._provider, self._chat, references)

    def _find(self, id: str, provider: Any = None) -> Record | None:
        """Return a record by its id, if it is neither in quarantine nor retracted."""
        if "records" not in self._permissions.can:
            return None
        provider = provider or self._provider
        get = getattr(provider, "get", None)
        record: Record | None
        if get is not None and takes(get, "what"):
            try:
                record = get(id)
            except REFUSALS:
                # The id is malformed.
                return None
        else:
            record = next((one for one in provider.records() if one.id == id), None)
        if record is None and self._session and takes(provider.records, "chat"):
            # All agents of a session share its notes.
            notes = provider.records(kind="note", chat=self._session)
            record = next((one for one in notes if one.id == id), None)
        return None if record is None or record.trust == "quarantined" or record.retracted else record

    def _record(self, id: str) -> Record:
        found = self._find(id)
        if found is None:
            raise unknown_id(id)
        return found

    def _page(self, cursor: str | None, *call: object) -> Page:
        """Return the page of a call at a cursor."""
        scope = repr(getattr(self._provider, "scope", ""))
        return Page(self._cap, self._count, cursor, (self._provider.name, scope, self._session, *call))


def call(method: Callable[..., Any], *arguments: object, **more: object) -> Any:
    """Call a method, with the keyword arguments that it takes and that are not None."""
    taken = {name: value for name, value in more.items() if value is not None and takes(method, name)}
    return method(*arguments, **taken)


def write_text(provider: Any, kind: str, text: str, *, by: Writer, chat: str | None) -> Record:
    """Write the one text of a kind, such as the profile; "" retracts it."""
    if text:
        written: Record = call(provider.remember, text, kind, by=by, chat=chat)
        return written
    taken_back: Record = call(provider.retract, kind, by=by, chat=chat)
    return taken_back


def check_limit(limit: int) -> int:
    """Return a limit of items, or raise InvalidInput."""
    return _LIMIT.check(limit, "limit")


def unknown_id(id: str) -> InvalidInput:
    """Return the error for an id of nothing, or of something that is withheld."""
    return InvalidInput(f"There is nothing with the id {quoted_argument(id)}.", "Use an id from a result.")
