"""Drafts of records: checked against the policy of their kind, and scanned for what may do harm."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.errors import Conflict, Denied, InvalidInput, shown
from holdfast.kinds import LONGEST, Kind
from holdfast.safety import guard
from holdfast.safety.guard import check_name_is_open, mask_name
from holdfast.store import sessions
from holdfast.store.records import UNSET_PRIORITY
from holdfast.text.clean import clean
from holdfast.text.json_text import dump
from holdfast.types import CONFLICT, Record, as_time, check_name, check_range, check_several, is_whole
from holdfast.types.acting import check_writer, current

if TYPE_CHECKING:
    from holdfast.store.database import Database
    from holdfast.types import Range, Scope, Time, Trust, Writer

# The writers whose texts need no quarantine.
TRUSTED: tuple[Writer, ...] = ("user", "system")
# The flag of a draft that came from outside the conversation, or that rests on none of its messages.
UNTRUSTED = "untrusted"
# The flag of a draft of a kind that only the user may add, in the user's own words; it waits for a release.
PROPOSED = "proposed"
# Whose word counts more; all other writers come after these, and are equal.
_RIGHTS: tuple[Writer, ...] = ("user", "system", "agent")
# Metadata of our own about how a record was learned; "speaker: assistant" beside a quote could be obeyed.
OWN_META = ("learned", "model", "speaker")
# Unicode categories: joiners, direction marks, spaces.
_INVISIBLE = ("Cf", "Zs", "Zl", "Zp")
MAX_TAGS = 100
# The fields of a draft that a record has as they are.
OF_RUNS = ("run", "plan")  # the targets of notes of a run
_PLAIN = ("kind", "text", "agent", "source", "run", "chat", "flags")
# Bytes of a category or a tag.
_MAX_LABEL = 200
_UNFOUNDED = "it rests on external sources, or on no quote"
_WRITER_NAMES = {"user": "the user", "agent": "the agent", "tool": "a tool", "import": "an import"}


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """A record that is to be written, as its writer describes it; `as_record` and `prepare` check it.

    A field that is left out has the default of its kind or, where a draft replaces the text of a record, the
    value of that record.
    """

    text: str
    kind: str = "fact"
    _: KW_ONLY
    target: str | None = None
    category: str = ""
    tags: str | Iterable[str] = ()
    meta: Mapping[str, object] | None = None
    priority: int | None = None
    agent: str = ""
    source: str = ""
    run: str = ""
    chat: str = ""
    messages: int | Range | None = None
    at: Time | None = None
    since: Time | None = None
    until: Time | None = None
    flags: tuple[str, ...] = ()


def as_record(draft: RecordDraft, default_target: str = "") -> Record:
    """Return the record that a draft describes, not yet stored and without an id.

    Raises:
        InvalidInput: a field has the wrong type or is out of range.

    """
    priority = draft.priority
    if priority is not None and not (is_whole(priority) and 1 <= priority <= 10):
        raise InvalidInput(f"The priority is {shown(priority)}.", "Use a whole number from 1 to 10.")
    since, until = as_time(draft.since, "since"), as_time(draft.until, "until")
    if since and until and not since < until:
        raise InvalidInput(f"`until` is {until}, which is not after `since`, {since}.", "Correct the times.")
    checked: dict[str, Any] = {name: getattr(draft, name) for name in _PLAIN}
    target = "" if draft.target is None else check_name(draft.target, "target", empty=True)
    return Record(
        id="",
        target=target or default_target,
        category=check_name(draft.category, "The category", empty=True, longest=_MAX_LABEL),
        tags=check_tags(draft.tags),
        meta=_check_meta(draft.meta),
        priority=UNSET_PRIORITY if priority is None else priority,
        messages=check_range(draft.messages, draft.chat),
        at=as_time(draft.at, "at"),
        since=since,
        until=until,
        **checked,
    )


def _check_meta(meta: object) -> dict[str, object]:
    if meta is None:
        return {}
    if not isinstance(meta, Mapping):
        raise InvalidInput(
            f"`meta` must be a dict, not {type(meta).__name__}.", "Pass a dict of JSON values."
        )
    checked = dict(meta)
    if checked and len(dump(checked, "`meta` of a record")) > LONGEST:
        raise InvalidInput(
            f"`meta` has more than {LONGEST:,} characters of JSON.",
            "Store it elsewhere, and refer to it by name.",
        )
    return checked


def prepare(draft: RecordDraft, kinds: Mapping[str, Kind], by: Writer) -> Record:
    """Return a draft as a new record of its kind: checked, signed and scanned, not yet stored.

    Raises:
        InvalidInput: a field is not valid for this kind, or another field than the text holds a credential.
        Denied: this writer may not add records of this kind.

    """
    kind = policy(kinds, draft.kind)
    record = as_record(draft, kind.targets[0])
    if PROPOSED not in record.flags:
        allow(kind, by, "add")
    target = record.target
    if target not in kind.targets:
        raise InvalidInput(
            f"A {kind.name} has no target {target!r}.",
            f"Use one of {', '.join(kind.targets)}." if any(kind.targets) else "Leave it out.",
        )
    if kind.one_per == "chat" and not record.chat:
        raise InvalidInput(f"There is one {kind.name} for each chat.", "Pass chat=.")
    if kind.name == "note" and target == "session" and not record.chat:
        raise InvalidInput("A session note belongs to a chat.", "Pass chat=, or use chat.remember.")
    if target == "run" and not record.run:
        raise InvalidInput(
            "A run note belongs to a run.", "Use run.remember within `with chat.run() as run`."
        )
    if record.run and target not in OF_RUNS:
        raise InvalidInput(f"A run has no {shown(target)} notes.", f"Use one of {', '.join(OF_RUNS)}.")
    check_length(check_text(record.text), kind)
    return scan(record, by)


def scan(record: Record, by: Writer) -> Record:
    """Return a record signed by its writer, its text without credentials, quarantined where it has to be.

    Raises:
        InvalidInput: it has no text, or another field than the text holds a credential.

    """
    text = check_text(record.text)
    findings = guard.scan(text)
    own = OWN_META if by == "reflect" else ()
    meta = {key: value for key, value in record.meta.items() if key not in own}
    fields = (record.category, *record.tags, record.source, _texts_in(meta))
    beside = guard.scan("\n".join(filter(None, fields)))
    if any(finding.kind == "secret" for finding in beside):
        raise InvalidInput(
            "The category, a tag, the source or the metadata holds a credential.",
            "Leave it out: credentials are not stored.",
        )
    everything = (*findings, *beside)
    waiting = {UNTRUSTED, PROPOSED} & {*record.flags}
    flags = tuple(sorted({finding.kind for finding in everything} | waiting))
    held = (guard.has_orders(everything) and by not in TRUSTED) or bool(waiting)
    trust: Trust = "quarantined" if held else "trusted"
    return replace(record, text=guard.redact(text, findings), flags=flags, trust=trust, by=by)


def _texts_in(value: object) -> str:
    """Return all texts in JSON values, keys included, one per line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {_texts_in(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(map(_texts_in, value))
    return ""


def policy(kinds: Mapping[str, Kind], name: object) -> Kind:
    """Return the policy of a kind, or raise InvalidInput."""
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidInput(f"{shown(name)} is not a kind.", f"Use one of {', '.join(kinds)}.")
    return kind


def rules_of(kinds: Mapping[str, Kind], name: str) -> Kind:
    """Return the policy for a stored record; the default one where its kind is not in the table any more."""
    return kinds.get(name) or Kind(name)


def allow(kind: Kind, by: Writer, action: str) -> None:
    """Raise Denied unless a writer may do this to records of a kind."""
    if by not in kind.writers:
        raise Denied(
            f"Only {' or '.join(map(writer_name, kind.writers))} may {action} a {kind.name}, not "
            f"{writer_name(by)}.",
            f"Ask for it, and pass by={kind.writers[0]!r}." if kind.writers else "Nobody may.",
        )


def check_text(text: object) -> str:
    """Return a text as it can be stored, without white space around it.

    Raises:
        InvalidInput: it is not text, or blank.

    """
    if not isinstance(text, str):
        raise InvalidInput(f"The text of a record must be text, not {type(text).__name__}.", "Pass a string.")
    cleaned = clean(text).strip()
    if all(unicodedata.category(character) in _INVISIBLE for character in cleaned):
        raise InvalidInput("The text is blank.", "Give it at least one visible character.")
    return cleaned


def check_length(text: str, kind: Kind) -> None:
    """Raise InvalidInput if a text is longer than its kind takes."""
    if len(text) > kind.longest:
        raise InvalidInput(
            f"The text has {len(text):,} characters; a {kind.name} has at most {kind.longest:,}.",
            "Shorten it, or store the whole as messages of a chat.",
        )


def check_room(kind: Kind, target: str, cap: int, used: int, size: int, freed: int = 0) -> None:
    """Raise InvalidInput if `size` more characters, in place of `freed`, exceed the cap of a target."""
    if used - freed + size > cap:
        name = f"{target} {kind.name}s".strip()
        new = f"; this one has {size:,}" if size else ""
        instead = f" in place of {freed:,}" if freed else ""
        raise InvalidInput(
            f"The {name} hold {used:,} of at most {cap:,} characters{new}{instead}.",
            f"Shorten it, or replace or retract some of the {name}.",
        )


def check_tags(tags: object) -> tuple[str, ...]:
    """Return tags as a tuple without repetitions, or raise InvalidInput."""
    several = check_several(tags, "tags")
    checked = tuple(dict.fromkeys(check_name(tag, "A tag", longest=_MAX_LABEL) for tag in several))
    if len(checked) > MAX_TAGS:
        raise InvalidInput(f"There are {len(checked):,} tags.", f"Use at most {MAX_TAGS}.")
    return checked


def check_expected(before: Record | None, expected: int | None) -> None:
    """Raise Conflict unless a record has the version that the caller read; 0 stands for no record."""
    current = 0 if before is None or before.retracted else before.version
    if expected is not None and current != expected:
        raise Conflict(
            f"The record has version {current}, not {shown(expected)}."
            if current
            else f"The record does not exist, and version {shown(expected)} was expected.",
            "Read it again, and decide what to write on top of it.",
        )


def unknown_version(version: object, newest: int) -> InvalidInput:
    """Return the error for a version that does not exist."""
    return InvalidInput(
        f"There is no version {shown(version)}: the newest is {newest}.", "See `memory.changes()`."
    )


def content_of(record: Record) -> tuple[object, ...]:
    """Return the content of a record, without its provenance: who wrote it where, how often, and when."""
    plain = (record.text, record.target, record.agent, record.category, record.tags, record.priority)
    state = (record.since, record.until, record.trust, record.retracted, record.pinned)
    return (*plain, dict(record.meta), *state)


def quarantine_reason(record: Record) -> str:
    """Return the reason for which a record is in quarantine, without quoting its text."""
    waits = {UNTRUSTED, PROPOSED, CONFLICT} & {*record.flags}
    flags = ", ".join(flag for flag in record.flags if flag not in ("secret", *waits))
    reasons = [f"{flags} from {writer_name(record.by)}"] if flags or not waits else []
    if PROPOSED in record.flags:
        reasons.append(f"the user said so in a chat; as a {record.kind} it waits for the user's word")
    if CONFLICT in record.flags:
        reasons.append("somebody with more right wrote another, or it was written later")
    if UNTRUSTED in record.flags:
        is_episode = record.kind == "episode"
        reasons.append("its chat used external sources" if is_episode else _UNFOUNDED)
    return "; ".join(reasons)


def writer_name(writer: Writer) -> str:
    """Return the name of a writer for a sentence."""
    return _WRITER_NAMES.get(writer, writer)


def has_right(by: Writer, other: Writer) -> int:
    """Return whether a writer's word counts less than another's (below 0), as much (0), or more."""
    own, others = (_RIGHTS.index(who) if who in _RIGHTS else len(_RIGHTS) for who in (by, other))
    return others - own


def writer_of(by: Writer | None, default: Writer) -> Writer:
    """Return who writes: the writer that is named, else that of `acting_as`, else the default."""
    return current().source or default if by is None else check_writer(by)


def check_chat_id(database: Database, scope: Scope, chat: str) -> str:
    """Return the id of a chat, or raise InvalidInput if it is new and holds a credential."""
    if mask_name(chat) != chat and not sessions.length(database, scope.space, chat):
        check_name_is_open(chat, "The id of the chat")
    return chat
