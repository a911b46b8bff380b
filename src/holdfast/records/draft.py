"""Drafts: what is to be written, checked against the policy of its kind, and scanned for what may do harm."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace

from holdfast.errors import Conflict, Denied, InvalidInput, shown
from holdfast.kinds import Kind
from holdfast.safety import guard
from holdfast.text.clean import clean
from holdfast.types import Record, Trust, Writer, check_name

TRUSTED: tuple[Writer, ...] = ("user", "system")  # whose words need no quarantine
_INVISIBLE = ("Cf", "Zs", "Zl", "Zp")  # categories of characters: joiners, direction marks, spaces
UNTRUSTED = (
    "untrusted"  # the flag of a draft that came from outside, or that rests on no words that were said
)
# How a record was learned, in our own words: "speaker: assistant" beside a quote could pass for an order.
SIGNED = ("learned", "model", "speaker")
MOST_TAGS = 100
LONGEST_NAME = 200  # bytes of a category or a tag


def prepare(draft: Record, kinds: Mapping[str, Kind], by: Writer) -> Record:
    """Check a new draft against the policy of its kind, and scan it.

    Raises:
        InvalidInput: its text, target or place is not one that the kind takes, or something beside the text is secret.
        Denied: this writer may not add one.

    """
    kind = policy(kinds, draft.kind)
    allow(kind, by, "add")
    target = draft.target or kind.targets[0]
    if target not in kind.targets:
        raise InvalidInput(
            f"A {draft.kind} has no target {target!r}.",
            f"Use one of {', '.join(kind.targets)}." if any(kind.targets) else "Leave it out.",
        )
    if kind.one_per == "chat" and not draft.chat:
        raise InvalidInput(f"There is one {draft.kind} for each chat.", "Pass chat=.")
    if draft.kind == "note" and target == "session" and not draft.chat:
        raise InvalidInput("A session note belongs to a chat.", "Pass chat=, or use chat.remember.")
    if (target == "run") != bool(draft.run):
        raise InvalidInput(
            "A run note belongs to a run.", "Use run.remember within `with chat.run() as run`."
        )
    check_length(check_text(draft.text), kind)
    return scan(replace(draft, target=target), by)


def scan(draft: Record, by: Writer) -> Record:
    """Sign a draft, redact its secrets, and decide whether it is to be trusted.

    Raises:
        InvalidInput: it has no text, or something beside the text is secret.

    """
    text = check_text(draft.text)
    findings = guard.scan(text)
    ours = SIGNED if by == "reflect" else ()
    said = {key: value for key, value in draft.meta.items() if key not in ours}
    beside = guard.scan("\n".join(filter(None, (draft.category, *draft.tags, draft.source, _leaves(said)))))
    if any(one.kind == "secret" and one.severity == "high" for one in beside):
        raise InvalidInput(
            "The category, a tag, the source or the metadata holds a credential.",
            "Leave it out: credentials are not kept.",
        )
    everything = (*findings, *beside)
    outside = {UNTRUSTED} & {*draft.flags}
    flags = tuple(sorted({one.kind for one in everything if one.severity == "high"} | outside))
    held = (guard.has_orders(everything) and by not in TRUSTED) or bool(outside)
    trust: Trust = "quarantined" if held else "trusted"
    return replace(draft, text=guard.redact(text, findings), flags=flags, trust=trust, by=by)


def allow(kind: Kind, by: Writer, action: str) -> None:
    """Raise Denied unless a writer may do this to records of a kind."""
    if by not in kind.writers:
        raise Denied(
            f"Only {' or '.join(map(named, kind.writers))} may {action} a {kind.name}, not {named(by)}.",
            f"Ask for it, and pass by={kind.writers[0]!r}." if kind.writers else "Nobody may.",
        )


def policy(kinds: Mapping[str, Kind], name: object) -> Kind:
    """Give the row of policy for a kind, or raise InvalidInput."""
    found = kinds.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidInput(f"{shown(name)} is not a kind.", f"Use one of {', '.join(kinds)}.")
    return found


def rules_of(kinds: Mapping[str, Kind], name: str) -> Kind:
    """Give the policy for a record that is there; one whose row is gone from the table has no rules left."""
    return kinds.get(name) or Kind(name)


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
            "Shorten it, or keep the whole as messages of a chat.",
        )


def check_room(kind: Kind, target: str, most: int, used: int, size: int, freed: int = 0) -> None:
    """Raise InvalidInput if a text of some size does not fit beside those of a target, in place of one of `freed` characters."""
    if used - freed + size > most:
        name = f"{target} {kind.name}s".strip()
        new = f"; this one has {size:,}" if size else ""
        instead = f" in place of {freed:,}" if freed else ""
        raise InvalidInput(
            f"The {name} hold {used:,} of at most {most:,} characters{new}{instead}.",
            f"Shorten it, or replace or retract some of the {name}.",
        )


def check_tags(tags: object) -> tuple[str, ...]:
    """Return tags as a tuple without repetitions, or raise InvalidInput."""
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        raise InvalidInput(
            f"Tags must be a list of texts, not {type(tags).__name__}.", "Pass a list of strings."
        )
    checked = tuple(dict.fromkeys(check_name(tag, "A tag", longest=LONGEST_NAME) for tag in tags))
    if len(checked) > MOST_TAGS:
        raise InvalidInput(f"There are {len(checked):,} tags.", f"Use at most {MOST_TAGS}.")
    return checked


def check_expected(before: Record | None, expected: int | None) -> None:
    """Raise Conflict unless a record has the version that the caller saw; 0 stands for none."""
    there = 0 if before is None or before.retracted else before.version
    if expected is not None and there != expected:
        raise Conflict(
            f"It has version {there} by now, not {shown(expected)}."
            if there
            else f"It is not there, and version {shown(expected)} was expected.",
            "Read it again, and decide what to write on top of it.",
        )


def no_version(version: object, newest: int) -> InvalidInput:
    """Make the error for a version that does not exist."""
    return InvalidInput(
        f"There is no version {shown(version)}: the newest is {newest}.", "See `memory.changes()`."
    )


def says(record: Record) -> tuple[object, ...]:
    """Give what a record says, without who said it where, how often, and when."""
    plain = (record.text, record.target, record.agent, record.category, record.tags, record.priority)
    return (*plain, dict(record.meta), record.since, record.until, record.trust, record.retracted)


def quarantine_reason(record: Record) -> str:
    """Say why a record is in quarantine, in no words of its own."""
    return f"{', '.join(flag for flag in record.flags if flag != 'secret')} from {named(record.by)}"


def _leaves(value: object) -> str:
    """Join all texts in JSON values, keys included."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {_leaves(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(map(_leaves, value))
    return ""


def named(writer: Writer) -> str:
    """Name a writer in a sentence."""
    names = {"user": "the user", "agent": "the agent", "tool": "a tool", "import": "an import"}
    return names.get(writer, writer)
