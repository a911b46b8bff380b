"""Conversations that branch, in the log of a chat: each entry follows the previous one, or links to another.

An entry is one or more messages. One that follows the newest entry of its chat says nothing; any other has a
link in `meta` to the entry that it follows, in its own chat or in another one. So a history is read backwards
without what lies on other branches, and goes on at the next older entry where messages were erased.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from holdfast.port.items import Items
    from holdfast.types import Message


class EntryPlace(NamedTuple):
    """Where the newest message of an entry is."""

    chat: str
    seq: int


class LoggedEntry(NamedTuple):
    """An entry: its id, the id of the one that it follows, and its messages in their order."""

    id: str
    parent: str | None
    messages: list[Message]


class ConversationLog:
    """The entries of conversations in the chats of a memory, in the transaction of the items that are passed.

    Args:
        mark: the name of the framework, the key in `meta` that tells entries.

    """

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def find(self, db: Items, id: str, chat: str) -> EntryPlace | None:
        """Return where an entry is, looking into `chat` first; None if it is not there, or was erased."""
        here = self._in_chat(db, id, chat)
        # Only a fork, or a reader who knows nothing but the id, has to look into all chats.
        others = () if here else db.chats_with(id)
        return here or next((place for other in others if (place := self._in_chat(db, id, other))), None)

    def _in_chat(self, db: Items, id: str, chat: str) -> EntryPlace | None:
        seqs = (message.seq for message in db.log(chat).find([id]) if self._entry(message) == id)
        return next((EntryPlace(chat, seq) for seq in seqs), None)

    def append(
        self, tx: Items, chat: str, entries: Sequence[tuple[str, str | None, Sequence[Message]]]
    ) -> bool:
        """Append entries (id, id of the entry before, messages); return False if an entry before is unknown.

        Raises:
            InvalidInput: one cannot be stored.
            Conflict: another message has the id of one.

        """
        newest = next(filter(None, map(self._entry, tx.log(chat).backward())), None)
        drafts: list[Message] = []
        for id, parent, messages in entries:
            mark: dict[str, object] = {"entry": id}
            if parent != newest:
                place = None if parent is None else self.find(tx, parent, chat)
                if place is None and parent is not None:
                    return False
                mark["after"] = place and {"entry": parent, "chat": place.chat, "seq": place.seq}
            last = len(messages) - 1
            drafts += [
                replace(message, id=id if n == last else f"{id}.{n}", meta={**message.meta, self._mark: mark})
                for n, message in enumerate(messages)
            ]
            newest = id
        tx.log(chat).append(drafts)
        return True

    def history(self, db: Items, head: EntryPlace) -> Iterator[LoggedEntry]:
        """Yield the entries from `head` back to the first, newest first."""
        group: list[Message] = []
        for message in self._follow_links(db, head):
            if group and self._entry(group[-1]) != self._entry(message):
                yield self._logged_entry(group, self._entry(message))
                group = []
            group.append(message)
        if group:
            yield self._logged_entry(group, None)

    def _logged_entry(self, group: list[Message], parent: str | None) -> LoggedEntry:
        return LoggedEntry(str(self._entry(group[0])), parent, group[::-1])

    def _follow_links(self, db: Items, head: EntryPlace) -> Iterator[Message]:
        """Yield the messages of entries from `head` backwards, following links."""
        place: EntryPlace | None = head
        seen: set[EntryPlace] = set()
        while place is not None and place not in seen:
            # A link leads to something older, unless somebody wrote it by hand.
            seen.add(place)
            place = yield from self._until_link(db, place)

    def _until_link(self, db: Items, place: EntryPlace) -> Generator[Message, None, EntryPlace | None]:
        """Yield messages up to an entry with a link; return where that leads."""
        link: Mapping[str, object] | None = None
        linked: str | None = None
        for message in db.log(place.chat).backward(place.seq + 1):
            id = self._entry(message)
            if linked is not None and id != linked:
                break
            if id is None:
                continue
            yield message
            mark = message.meta[self._mark]
            if isinstance(mark, dict) and "after" in mark:
                linked, link = id, mark["after"]
        return self._link_target(db, link) if isinstance(link, dict) else None

    def _link_target(self, db: Items, link: Mapping[str, object]) -> EntryPlace | None:
        """Return where a link leads; if that was erased, where it was, and reading goes on before it."""
        id, chat, seq = link.get("entry"), link.get("chat"), link.get("seq")
        if not (isinstance(id, str) and isinstance(chat, str) and isinstance(seq, int)):
            return None
        return self.find(db, id, chat) or EntryPlace(chat, seq)

    def _entry(self, message: Message) -> str | None:
        """Return the id of the entry that a message belongs to; None if it belongs to none."""
        mark = message.meta.get(self._mark)
        id = mark.get("entry") if isinstance(mark, dict) else None
        return id if isinstance(id, str) else None
