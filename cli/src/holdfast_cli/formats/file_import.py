"""The import of one file: its messages and records, each once, a batch at a time."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

from holdfast import Chat, Memory
from holdfast.errors import Conflict, InvalidInput
from holdfast.port.imports import Imports
from holdfast.port.texts import clean
from holdfast.types import Message, ToolCall
from holdfast_cli.formats.import_items import ImportedChat, ImportedMessage, ImportedRecord, Item, Skip
from holdfast_cli.formats.import_report import Skipped, Skips, unreadable
from holdfast_cli.formats.json_values import hash_of, hook_id
from holdfast_cli.formats.message_order import in_order
from holdfast_cli.formats.private_tags import PRIVATE
from holdfast_cli.formats.record_import import store_records
from holdfast_cli.formats.redaction import IGNORED, Redactor, Rules
from holdfast_cli.formats.said_before import private_in
from holdfast_cli.formats.sources import SourceFile

_NO_LINE = 0  # the line of a whole file
_BATCH = 500  # messages or records in one transaction, or up to twice as many
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_STORED_BEFORE = "stored before it was private or ignored, and left as it is: `holdfast erase` removes it"
_TOLD = ("user", "assistant")  # whose words hooks are told of
_FEW, _SHORT = 2, 80  # messages, and characters of as many, that two conversations may have in common
_LIKELY = 20  # chats with the same beginning that are compared
_TWICE = "the file has it twice"


class Account(TypedDict):
    """The result of importing a file, as JSON values to be stored with its digest."""

    chats: list[str]
    messages: int
    records: int
    skipped: list[tuple[str, bool, int, tuple[int, ...]]]


@dataclass(slots=True)
class FileImport:
    """The import of one file, a batch at a time."""

    memory: Memory
    source: SourceFile
    progress: Callable[[int], None]
    rules: Rules | None
    before: Iterable[Item] = ()
    is_whole: bool = True
    is_redacted: bool = False
    """Whether something was left out as the user wished."""
    added: int = 0
    records_added: int = 0
    _told: Counter[tuple[str, str]] = field(default_factory=Counter)
    _chats: set[str] = field(default_factory=set)
    _sources: dict[str, str] = field(default_factory=dict)
    _stored: int = 0
    _records: int = 0
    _skips: Skips = field(default_factory=Skips)
    _begun: Mapping[tuple[str, str], Sequence[str]] | None = None
    _homes: dict[str, str] = field(default_factory=dict)
    _copied: set[str] = field(default_factory=set)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The items left out so far, by reason."""
        skips = self._skips.all()
        return skips if self._stored or self._records else unreadable(self.source.format.name, skips)

    @property
    def is_broken(self) -> bool:
        """Whether the file could not be read to its end."""
        return any(skip.problem and _NO_LINE in skip.lines for skip in self.skipped)

    def run(self) -> Account:
        """Import it, and return the counts as JSON values, to be stored with its digest."""
        for batch in _batches(self._items()):
            by_chat: dict[str, list[ImportedMessage]] = defaultdict(list)
            records: list[ImportedRecord] = []
            for item in batch:
                if isinstance(item, ImportedRecord):
                    records.append(item)
                else:
                    by_chat[item.chat.id].append(item)
            for messages in by_chat.values():
                self._store(messages)
            report = store_records(self.memory, records)
            self.records_added += report.added
            self._records += report.added + report.present
            self._skip(report.skips)
            self.progress(self._stored)
        return {
            "chats": sorted(self._chats),
            "messages": self._stored,
            "records": self._records,
            "skipped": [(skip.reason, skip.problem, skip.count, skip.lines) for skip in self.skipped],
        }

    def _items(self) -> Iterator[ImportedMessage | ImportedRecord]:
        redactor = Redactor(self.rules, private=private_in(self.source), earlier=self._call)
        for item in self.before:
            if isinstance(item, ImportedMessage):
                redactor.redact(item)
        for item in in_order(self.source, self._call):
            if isinstance(item, ImportedMessage):
                result: Item = redactor.redact(item)
            else:
                result = redactor.redact_record(item) if isinstance(item, ImportedRecord) else item
            self.is_redacted |= result is not item
            result = result if isinstance(result, Skip) else self._admit(result)
            if isinstance(result, Skip):
                self._skip([result])
            else:
                yield result

    def _admit(self, item: ImportedMessage | ImportedRecord) -> ImportedMessage | ImportedRecord | Skip:
        """Return an item of this user that is no repeated record, else the reason why it is left out."""
        owner = item.owner if isinstance(item, ImportedRecord) else item.chat.owner
        if owner and owner.is_another(self.memory.scope.user):
            return Skip(item.line, f"of the user {clean(owner.user)[:80]!r}: import it with that --user")
        if isinstance(item, ImportedMessage):
            return item
        source, told = item.source, hash_of(item.record["text"], 8)
        if self._sources.get(source, told) != told:
            # Another thing of the same name, such as a second block of one label.
            source = f"{source}#{told}"
        if source in self._sources:
            return Skip(item.line, _TWICE)
        self._sources[source] = told
        return replace(item, record={**item.record, "source": source})

    def _call(self, chat: str, call: str) -> ToolCall | None:
        """Return a call that was imported before."""
        return Imports(self.memory).call(clean(chat), call)

    def _skip(self, skips: Iterable[Skip]) -> None:
        self._skips.add(self.source.file.path, skips)

    def _store(self, items: Sequence[ImportedMessage]) -> None:
        """Append messages of one chat that are not stored yet."""
        origin = items[0].chat
        try:
            memory = self.memory.scoped(agent=clean(origin.agent)) if origin.agent else self.memory
            chat = memory.chat(self._home(memory, items))
        except InvalidInput as error:
            self._skip(Skip(item.line, error.what, problem=True) for item in items)
            return
        stats = chat.stats()
        before = stats.messages
        fresh = self._without_stored(memory, chat.id, items)
        if self.source.format.name == "Claude Code":
            fresh = self._without_copied(memory, chat.id, fresh)
        if before and self.is_whole:
            fresh = self._without_told(memory, chat, fresh)
        count = self._append(chat, fresh)
        if count and not before:
            _describe(memory, chat, origin)
        elif stats.info and stats.info.title in {
            Imports(memory).title_of(item.message.content) or item.message.content for item in items
        }:
            # It has no title of its own yet, and may have got one in the file since.
            _describe(memory, chat, ImportedChat(chat.id, origin.title))
        present = len(items) - len(fresh)
        if count or (present and before):
            self._chats.add(chat.id)
        self._stored += present + count

    def _home(self, memory: Memory, items: Sequence[ImportedMessage]) -> str:
        """Return the chat id for messages; for a chat named after its file, that of the chat it repeats.

        That is a chat whose messages are the first of these, or the other way round: an export that has
        grown, or has another name. Chats of one file, and those that share less, are several.
        """
        origin = items[0].chat
        own = self._homes.get(origin.id, clean(origin.id))
        if origin.by_file and origin.id not in self._homes and len(items) >= _FEW:
            if self._begun is None:
                self._begun = Imports(memory).beginnings()
            likely = self._begun.get((items[0].message.id, items[1].message.id), ())
            for chat in () if own in likely else likely[:_LIKELY]:
                history = memory.chat(chat).history(len(items), after=0)
                if chat not in self._homes.values() and _repeats(history, items):
                    own = chat
                    break
        self._homes[origin.id] = own
        return own

    def _without_stored(
        self, memory: Memory, chat: str, items: Sequence[ImportedMessage]
    ) -> Sequence[ImportedMessage]:
        """Return the items whose text is not stored yet; programs rewrite the payloads of the same messages.

        A redacted message is stored once, whatever is left out of it today.
        """
        ids = sorted({item.message.id for item in items if item.message.id})
        present = Imports(memory).find(chat, ids)
        by_id = {message.id: message for message in present}
        fresh = []
        for item in items:
            message = by_id.get(item.message.id)
            if message is None:
                fresh.append(item)
            elif item.before and (_words(message), message.raw) == (_words(item.before), item.before.raw):
                self._skip([Skip(item.line, _STORED_BEFORE)])
            elif not _is_same(message, item):
                fresh.append(item)
        return fresh

    def _without_copied(
        self, memory: Memory, chat: str, items: Sequence[ImportedMessage]
    ) -> Sequence[ImportedMessage]:
        """Return the items that no other chat has.

        A session that goes on in a new file begins there with the lines of the first one, under their ids.
        """
        imports, tried = Imports(memory), {chat}
        while items:
            others = (self._copied | imports.chats_with(items[0].message.id)) - tried
            if not others:
                break
            for other in others:
                items = self._without_stored(memory, other, items)
            tried |= others
        self._copied |= tried - {chat}
        return items

    def _without_told(
        self, memory: Memory, chat: Chat, items: Sequence[ImportedMessage]
    ) -> Sequence[ImportedMessage]:
        """Return the items that no hook has stored before, by their words and how often they were said."""
        ids = []
        for message in (item.message for item in items):
            is_told = message.role in _TOLD and not message.calls
            prefix = hook_id(message.role, message.content) if is_told else ""
            self._told[chat.id, prefix] += 1
            ids.append(f"{prefix}{self._told[chat.id, prefix]}" if prefix else "")
        present = {message.id for message in Imports(memory).find(chat.id, sorted(filter(None, ids)))}
        return [item for item, identity in zip(items, ids, strict=True) if identity not in present]

    def _append(self, chat: Chat, items: Sequence[ImportedMessage]) -> int:
        """Append in one transaction, after an error in halves, and return the number of messages stored."""
        if not items:
            return 0
        try:
            result = chat.append([item.message for item in items])
        except (InvalidInput, Conflict) as error:
            if len(items) > 1:
                half = len(items) // 2
                return self._append(chat, items[:half]) + self._append(chat, items[half:])
            is_another = isinstance(error, Conflict)
            reason = "another message is stored under its id" if is_another else error.what
            self._skip([Skip(items[0].line, reason, problem=True)])
            return 0
        # Another import may have stored some of them meanwhile.
        self.added += getattr(result, "added", 0)
        return len(items)


def _batches(
    items: Iterable[ImportedMessage | ImportedRecord],
) -> Iterator[list[ImportedMessage | ImportedRecord]]:
    """Yield items in batches that end where a chat does, unless it is long: its beginning identifies it."""
    batch: list[ImportedMessage | ImportedRecord] = []
    for item in items:
        if len(batch) >= _BATCH:
            first, last, new = (getattr(entry, "chat", None) for entry in (batch[0], batch[-1], item))
            if last in (None, first) or last != new or len(batch) >= 2 * _BATCH:
                yield batch
                batch = []
        batch.append(item)
    yield batch


def _words(message: Message) -> tuple[object, ...]:
    return message.role, message.name, message.content, message.calls


def _is_same(message: Message, item: ImportedMessage) -> bool:
    """Return whether a stored message is that of an item, whatever is left out of it today."""
    if message.id != item.message.id:
        return False
    words = _words(item.message), _words(item.before or item.message)
    if _words(message) in words or message.raw == item.message.raw is not None:
        return True
    text = repr(_words(message))
    return PRIVATE in text or IGNORED in text


def _repeats(history: Sequence[Message], items: Sequence[ImportedMessage]) -> bool:
    """Return whether one conversation begins as another does, and no third is likely to."""
    is_long = len(history) > _FEW or sum(len(message.content) for message in history) > _SHORT
    return is_long and all(map(_is_same, history, items))


def _describe(memory: Memory, chat: Chat, origin: ImportedChat) -> None:
    """Set title, archive flag and label of a new chat; an import never changes those that were set."""
    title = " ".join(_CONTROL.sub(" ", clean(origin.title)).split())
    # Some clients give what they put around the first words.
    if title and Imports(memory).title_of(origin.title):
        chat.rename(title[:500])
    if origin.archived:
        chat.archive()
    if origin.label:
        Imports(memory).relabel(chat.id, origin.label)
