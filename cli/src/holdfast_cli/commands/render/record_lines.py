"""Records on a screen: tables, a record in full, outcomes of writes, changes."""

import json
from collections.abc import Iterable, Mapping, Sequence

from holdfast import Memory
from holdfast.port.texts import shorten_line
from holdfast.types import Change, Record, Wording
from holdfast.types.records import CONFLICT
from holdfast.types.references import write_reference
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Part, Screen, count, plain, when

_SHORT = 160  # characters of a text in a list
_OWN = ("user", "agent", "app")  # writers with words of their own
_QUOTE = "quote"  # of the metadata, the words that a record rests on


def change_of(memory: Memory, record: Record) -> Change:
    """Read the change that made this version of a record."""
    return memory.scoped(agent="").at(record.version).changes(id=record.id, limit=1)[0]


def report(options: Options, memory: Memory, record: Record, since: int) -> None:
    """Answer with the outcome of a write after a version: a change, or a known record."""
    is_new = record.version > since
    before = change_of(memory, record).before if is_new else record.text
    screen = options.answer({"record": plain(record), "before": before, "written": is_new})
    what = f" {kind_name(record.kind, record.target)} {record.id}: "
    if not is_new:
        screen.say("Nothing to change:", what, "it says so already.")
    elif record.action == "duplicate":
        note = f"Already known, now said {count(record.evidence, 'time')}:"
        screen.say((note, "bold"), what, short(record.text))
    elif record.action == "quarantine":
        screen.say(("In quarantine:", "bold yellow"), what, record.why)
    else:
        why = f"  ({record.why})" if record.why else ""
        after = None if record.retracted else record.text
        verb = f"{record.action.removesuffix('e').capitalize()}ed:"  # added, updated, replaced, …
        verb = verb.replace("ined:", "inned:")  # pinned
        screen.say((verb, "bold"), what, *step(before, after), (why, "dim"))
    if record.action == "quarantine":
        release = options.line("quarantine", "--release", record.id)
        screen.say(f"→ It is in no recall and no prompt until the user releases it: {release}")
    elif "secret" in record.flags and is_new:
        screen.say(("A credential was cut out of it before it was stored.", "yellow"))
    if record.action == "retract":
        screen.say((f"Bring it back: {options.line('undo')}", "dim"))


def kind_name(kind: str, target: str = "") -> str:
    """Write the kind of a record, with its target."""
    return f"{kind} ({target})" if target else kind


def short(text: str) -> str:
    """Write a text as one line, cut at a word."""
    return shorten_line(" ".join(text.split()), _SHORT)


def step(before: str | None, after: str | None) -> list[Part]:
    """Write the change of a text in one line, cut so that the difference shows."""
    if before is None or after is None or before == after:
        return [short(after if after is not None else before or "")]
    return [(_cut_shared(before, after), "red"), " → ", (_cut_shared(after, before), "green")]


def _cut_shared(text: str, other: str) -> str:
    """Cut from a text a long beginning that it shares with another."""
    same = next(
        (at for at, (mine, theirs) in enumerate(zip(text, other, strict=False)) if mine != theirs),
        min(len(text), len(other)),
    )
    start = text.rfind(" ", 0, max(0, same - _SHORT // 4)) + 1 if same > _SHORT // 2 else 0
    return ("…" if start else "") + short(text[start:])


def show_change(screen: Screen, change: Change) -> None:
    """Print a change: its version, when, by whom, what was done to which record, the text, and why."""
    chat = f" in {change.chat}" if change.chat else ""
    screen.say(
        (f"{change.version or '':>4}", "bold"),
        (f"  {when(change.at)}  ", "dim"),
        (change.by, "bold"),
        f"  {change.action} {change.kind}{chat}  ",
        (f"({change.id})", "dim"),
        hang=6,
    )
    sign: Part = ("− ", "red") if change.after is None else ("+ ", "green") if change.before is None else ""
    if change.version or change.kind == "branch":
        screen.say(sign, *step(change.before, change.after), indent=6)
    if change.said and change.said != change.after:
        screen.say(f"said: {short(change.said)}", indent=6)
    if change.why:
        screen.say((f"why: {change.why}", "dim"), indent=6)


def columns_of(records: Sequence[Record]) -> Mapping[str, Sequence[Part]]:
    """Return the columns of a table of records."""
    return {
        "id": [record.id for record in records],
        "kind": [kind_name(record.kind, record.target) for record in records],
        "text": [short(record.text) for record in records],
        "category": [record.category for record in records],
        "tags": [", ".join(record.tags) for record in records],
        "priority": [str(record.priority) if record.priority != 5 else "" for record in records],
        "said": [f"{record.evidence}×" if record.evidence > 1 else "" for record in records],
        "true": [valid(record) for record in records],
        "flags": [", ".join(flags(record)) for record in records],
        "agent": [record.agent for record in records],
        "by": [record.by for record in records],
        "written": [when(record.created) for record in records],
    }


def valid(record: Record) -> str:
    """Return the period in which a record is true, "" for always."""
    begins = f"from {when(record.since)}" if record.since else ""
    ends = f"before {when(record.until)}" if record.until else ""
    return " ".join(part for part in (begins, ends) if part)


def flags(record: Record) -> list[str]:
    """Return the guard's flags of a record from outside, its trust unless trusted, and its pin."""
    pinned = ["pinned"] * record.pinned
    if record.trust != "trusted":
        return [*record.flags, record.trust, *pinned]
    return pinned + [flag for flag in record.flags if flag == CONFLICT or record.by not in _OWN]


def source_of(record: Record) -> str:
    """Return the source of a record."""
    chat = f"chat {place(record)}" if record.chat else ""
    return ", ".join(filter(None, (chat, record.source, *record.sources)))


def place(record: Record | Wording) -> str:
    """Write the source of a record: messages, or a chat, or "" for neither."""
    return write_reference(record.chat, *record.messages) if record.messages else record.chat


def _cite(wording: Wording, text: str) -> str:
    """Return the text of a duplicate, if it differs, and its messages."""
    words, where = "" if wording.text == text else short(wording.text), place(wording)
    return f"{words} ({where})" if words and where else words or where


def show_record(screen: Screen, record: Record, options: Options) -> None:
    """Print all of a record, and how to read the messages that it comes from."""
    screen.say((kind_name(record.kind, record.target), "bold"), (f"  ({record.id})", "dim"))
    screen.say(f"{record.text}\n", indent=4)
    why = f": {record.why}" if record.why else ""
    written = f"{when(record.created)} by {record.by}, version {record.version} ({record.action}{why})"
    meta = {name: value for name, value in record.meta.items() if name != _QUOTE}
    wordings = (_cite(wording, record.text) for wording in record.wordings)
    screen.facts(
        ("written", written),
        ("learned", source_of(record)),
        ("quote", f"“{record.meta[_QUOTE]}”" if record.meta.get(_QUOTE) else ""),
        ("said", count(record.evidence, "time")),
        ("also", "; ".join(filter(None, dict.fromkeys(wordings)))),
        ("true", valid(record)),
        ("category", record.category),
        ("tags", ", ".join(record.tags)),
        ("priority", f"{record.priority} of 10" if record.priority != 5 else ""),
        ("flags", ", ".join(flags(record))),
        ("replaces", record.replaces),
        ("agent", record.agent),
        ("run", record.run),
        ("used", f"{count(record.uses, 'time')}, last {when(record.used)}" if record.uses else ""),
        ("metadata", json.dumps(meta, ensure_ascii=False) if meta else ""),
    )
    if record.chat and record.messages:
        screen.say((f"Read what was said: {options.line('show', place(record))}", "dim"))


def show_history(screen: Screen, changes: Iterable[Change]) -> None:
    """Print the versions of a record, the newest first."""
    screen.say(("\nVersions", "bold"))
    for change in changes:
        show_change(screen, change)
