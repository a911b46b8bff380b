"""A memory as one agent holds it: in which session, what it may do, and within how many tokens."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, TypeVar

from holdfast.contract import Provider, Session, capabilities, check_provider
from holdfast.errors import Denied, InvalidInput
from holdfast.errors import shown as shown_in_error
from holdfast.safety.guard import mask_name
from holdfast.text.tokens import CountBy, counter, estimate_tokens
from holdfast.tools import paging, render
from holdfast.tools.json_schema import Range
from holdfast.tools.paging import LEAST, Pager, Place
from holdfast.tools.permissions import (
    ALL,
    Action,
    Setting,
    available,
    locked_parts,
    part_of,
    read_names,
    takes,
)
from holdfast.types import Record, Writer, check_count

KINDS = ("fact", "finding", "insight", "lesson")
_APART = ("constraint", "note", "file")  # kinds that have tools of their own
MOST = 50  # of what one call lists
NO_SESSION = "tools"  # where no session is named, one is opened, and nothing stored in it
REFUSALS = (LookupError, ValueError, PermissionError)
"""What a provider refuses with; our own errors of that sort are among them."""

_INNER = str.maketrans("“”", '""')
Confirm = Callable[[str], bool]
_LISTED = Range(1, MOST)
Limit = Annotated[int, _LISTED]
Query = Annotated[str, "2-4 distinctive words or a question"]
Id = Annotated[str, "from a result"]
Cursor = Annotated[str | None, "of the last result, to go on"]
Shown = TypeVar("Shown")


def unconfirmed(_: str) -> bool:
    """Confirm nothing: what the user must confirm is refused."""
    return False


def check_confirm(confirm: Confirm | None) -> Confirm:
    """Check what asks the user; None confirms nothing.

    Raises:
        InvalidInput: it is no function, or it has to be awaited: what it returns is no answer.

    """
    if confirm is not None and not callable(confirm):
        raise InvalidInput(
            f"`confirm` is {shown_in_error(confirm)}.", "Pass a function that returns True or False."
        )
    if inspect.iscoroutinefunction(confirm):
        raise InvalidInput(
            "`confirm` has to be awaited.", "Pass a plain function that returns True or False."
        )
    return confirm or unconfirmed


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
    """Quote a text to the user who is to confirm it: nothing in it hides, and nothing in it ends the quotation."""
    seen = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return f"“{seen.translate(_INNER)}”"


def kinds_of(provider: Provider) -> tuple[str, ...]:
    """Give the kinds of records that an agent stores one by one in a memory."""
    ours = render.opened_of(provider)
    if ours is None:
        return KINDS
    return tuple(
        kind.name
        for kind in ours.kinds.values()
        if not kind.one_per and kind.name not in _APART and "agent" in kind.writers
    )


class Bound:
    """Hold a memory for an agent. A part of `Actions`."""

    def __init__(
        self,
        provider: Provider,
        chat: Session | str | None = None,
        *,
        by: Writer = "agent",
        confirm: Confirm | None = None,
        kinds: Iterable[str] | None = None,
        read_only: bool | Iterable[str] = False,
        token_cap: int = 2_000,
        count_tokens: CountBy | None = None,
    ) -> None:
        check_provider(provider)
        if check_count(token_cap, "token_cap") < LEAST:
            raise InvalidInput(f"A result of {token_cap} tokens says nothing.", f"Allow {LEAST} at least.")
        if chat is not None and not isinstance(chat, str) and not isinstance(getattr(chat, "id", None), str):
            raise InvalidInput(f"`chat` is {shown_in_error(chat)}.", "Pass a chat, or the id of one.")
        opened = (
            provider.chat(NO_SESSION if chat is None else chat)
            if chat is None or isinstance(chat, str)
            else chat
        )
        self._provider: Any = provider  # what it can do beyond the core is found out, not declared
        self._chat: Any = opened
        self._session = "" if chat is None else opened.id
        self._by = by
        self._confirm = check_confirm(confirm)
        self._kinds = kinds_of(provider) if kinds is None else read_names(kinds, "kinds")
        ours = render.opened_of(provider)
        usual = ours.count_tokens if ours else estimate_tokens
        self._pager = Pager(token_cap, usual if count_tokens is None else counter(count_tokens))
        self._cap = token_cap
        self._setting = Setting(provider, capabilities(provider), locked_parts(read_only), self._session)

    def available(self) -> tuple[Action, ...]:
        """List the actions that there are, with those of their parameters that there are."""
        return self._available

    @cached_property
    def _available(self) -> tuple[Action, ...]:
        found = available(self._setting, {name: getattr(type(self), name) for name in ALL})
        return tuple(self._with_kinds(one) if one.name == "remember" else one for one in found)

    def _with_kinds(self, action: Action) -> Action:
        return replace(
            action,
            parameters=tuple(
                replace(one, choices=self._kinds) if one.name == "kind" else one for one in action.parameters
            ),
        )

    def _begin(self, action: str, **given: object) -> None:
        """Raise where an action is not there, or something is given that it does not take here."""
        there = {one.name: {known.name for known in one.parameters} for one in self.available()}
        what = "nothing may be written, or this memory cannot do it"
        if action not in there:
            raise Denied(f"`{action}` is not possible here: {what}.", f"There are {', '.join(there)}.")
        if missing := [
            name for name, value in given.items() if value is not None and name not in there[action]
        ]:
            raise Denied(f"`{action}` takes no `{missing[0]}` here: {what}.", "Leave it out.")

    def _writer(self, kind: str, question: str) -> Writer:
        """Say who writes a record of a kind: for a constraint the user, if they confirm it.

        Raises:
            Denied: they do not, or this part is read-only.

        """
        if not self._setting.writes(part_of(kind)):
            raise Denied(f"The part {part_of(kind)!r} is read-only here.", "Leave it as it is.")
        if kind != "constraint":
            return self._by
        ask(self._confirm, question)
        return "user"

    def _in_chat(self) -> str | None:
        return self._session or None

    def _note(self, what: Sequence[str]) -> None:
        """Note what the session was shown, so that it is not learned again."""
        if self._session:
            render.note(self._provider, self._chat, what)

    def _advance(self) -> None:
        """Let the next prompt of the session show what was written in it, if it would not by itself."""
        if self._session and "snapshots" in self._setting.can and self._chat.snapshot() is not None:
            self._chat.advance()

    def _found(self, id: str, provider: Any = None) -> Record | None:
        """Look for a record by its id, in another provider if one is given; what is in quarantine is not to be found."""
        if "records" not in self._setting.can:
            return None
        provider = provider or self._provider
        get = getattr(provider, "get", None)
        if get is not None and takes(get, "what"):
            try:
                record: Record | None = get(id)
            except REFUSALS:  # what no record can be called
                return None
        else:
            record = next((one for one in provider.records() if one.id == id), None)
        if (
            record is None and self._session and takes(provider.records, "chat")
        ):  # one that all agents of it share
            there = provider.records(kind="note", chat=self._session)
            record = next((one for one in there if one.id == id), None)
        return None if record is None or record.trust == "quarantined" or record.retracted else record

    def _record(self, id: str) -> Record:
        found = self._found(id)
        if found is None:
            raise nothing(id)
        return found

    def _place(self, cursor: str | None, *call: object) -> tuple[str, Place]:
        """Name the call for its cursors, and say where its page begins."""
        named = paging.digest(
            self._provider.name, repr(getattr(self._provider, "scope", "")), self._session, *call
        )
        return named, paging.read(cursor, named)

    def _page(
        self,
        items: Sequence[Shown],
        place: Place,
        of: str,
        *,
        field: str = "text",
        more: bool = False,
        resume: bool = True,
    ) -> tuple[list[Shown], str | None]:
        """Give what fits of the items from a place on, and the cursor if there is more.

        Where a text was cut, the cursor resumes it; not so for an excerpt, of which `expand` gives the whole.
        """
        fitting, page = self._pager.fill(items, field, place.character)
        used, characters = (page.items, page.characters) if resume else (len(fitting), 0)
        if used < len(items) or more:
            return fitting, paging.write(Place("", place.item + used, characters), of)
        return fitting, None


def call(method: Callable[..., Any], *given: object, **more: object) -> Any:
    """Call a method with those further arguments that are given and that it takes."""
    taken = {name: value for name, value in more.items() if value is not None and takes(method, name)}
    return method(*given, **taken)


def counted(limit: int) -> int:
    """Check how many are wanted."""
    return _LISTED.check(limit, "limit")


def nothing(id: str) -> InvalidInput:
    """Say that an id names nothing that can be shown."""
    return InvalidInput(f"There is nothing with the id {short(id)}.", "Use an id from a result.")


def short(text: str) -> str:
    """Quote what a model has passed, without credentials."""
    text = mask_name(text)
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
