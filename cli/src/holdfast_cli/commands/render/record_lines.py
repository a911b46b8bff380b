"""Records: tables, one with its source, outcomes, changes."""

import json
from collections.abc import Iterable, Sequence

from holdfast import Memory
from holdfast.port.texts import shorten_line
from holdfast.types import Change, Record, Wording
from holdfast.types.records import CONFLICT
from holdfast.types.references import write_reference
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Part, Screen, count, plain, when

_SHORT = 160  # characters of a text in a list
_OWN = ("user", "agent", "app")  # whose words come from nowhere else
_QUOTE = "quote"  # of the metadata, the words that a record rests on


def change_of(memory: Memory, record: Record) -> Change:
    """Read the change that made this version of a record."""
    return memory.scoped(agent="").at(record.version).changes(id=record.id, limit=1)[0]


def report(options: Options, memory: Memory, record: Record, since: int) -> None:
    """Answer with what became of a record since a version: written, or a duplicate."""
    written = record.version > since
    before = change_of(memory, record).before if written else record.text
    screen = options.answer({"record": plain(record), "before": before, "written": written})
    what = f" {called(record.kind, record.target)} {record.id}: "
    if not written:
        screen.say("Nothing to change:", what, "it says so already.")
    elif record.action == "duplicate":
        said = f"Already known, now said {count(record.evidence, 'time')}:"
        screen.say((said, "bold"), what, short(record.text))
    elif record.action == "quarantine":
        screen.say(("In quarantine:", "bold yellow"), what, record.why)
    else:
        why = f"  ({record.why})" if record.why else ""
        after = None if record.retracted else record.text
        done = f"{record.action.removesuffix('e').capitalize()}ed:"  # added, updated, replaced, …
        screen.say((done, "bold"), what, *step(before, after), (why, "dim"))
    if record.action == "quarantine":
        release = options.line("quarantine", "--release", record.id)
        screen.say(f"→ It is in no recall and no prompt until the user releases it: {release}")
    elif "secret" in record.flags and written:
        screen.say(("A credential was cut out of it before it was stored.", "yellow"))
    if record.action == "retract":
        screen.say((f"Bring it back: {options.line('undo')}", "dim"))


def called(kind: str, target: str = "") -> str:
    """Name what a record is."""
    return f"{kind} ({target})" if target else kind


def short(text: str) -> str:
    """Write a text as one line, cut at a word."""
    return shorten_line(" ".join(text.split()), _SHORT)


def step(before: str | None, after: str | None) -> list[Part]:
    """Write how a text changed, in one line; both sides show where they part."""
    if before is None or after is None or before == after:
        return [short(after if after is not None else before or "")]
    return [(_from_where(before, after), "red"), " → ", (_from_where(after, before), "green")]


def _from_where(text: str, other: str) -> str:
    """Leave out a long beginning that both texts have."""
    same = next(
        (place for place, (one, two) in enumerate(zip(text, other, strict=False)) if one != two),
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
    if change.version:
        screen.say(sign, *step(change.before, change.after), indent=6)
    if change.said and change.said != change.after:
        screen.say(f"said: {short(change.said)}", indent=6)
    if change.why:
        screen.say((f"why: {change.why}", "dim"), indent=6)


def show_table(screen: Screen, records: Sequence[Record]) -> None:
    """Print records as a table, with the columns that say something about any of them."""
    columns: dict[str, Sequence[Part]] = {
        "id": [one.id for one in records],
        "kind": [called(one.kind, one.target) for one in records],
        "text": [short(one.text) for one in records],
        "category": [one.category for one in records],
        "tags": [", ".join(one.tags) for one in records],
        "priority": [str(one.priority) if one.priority != 5 else "" for one in records],
        "said": [f"{one.evidence}×" if one.evidence > 1 else "" for one in records],
        "true": [valid(one) for one in records],
        "flags": [", ".join(flags(one, verbose=screen.verbose)) for one in records],
        "agent": [one.agent for one in records],
        "by": [one.by for one in records],
        "written": [when(one.created) for one in records],
    }
    screen.table(columns, whole="id")


def valid(record: Record) -> str:
    """Return the period in which a record is true, "" for always."""
    begins = f"from {when(record.since)}" if record.since else ""
    ends = f"before {when(record.until)}" if record.until else ""
    return " ".join(part for part in (begins, ends) if part)


def flags(record: Record, *, verbose: bool = False) -> list[str]:
    """Name what the guard found in a record from outside, and whether it was let out of quarantine."""
    if record.trust != "trusted":
        return [*record.flags, record.trust]
    return [one for one in record.flags if verbose or one == CONFLICT or record.by not in _OWN]


def learned(record: Record) -> str:
    """Return the source of a record."""
    chat = f"chat {place(record)}" if record.chat else ""
    sources = [part for part in (record.source, *record.sources) if part]
    return ", ".join(part for part in (chat, *sources) if part)


def place(record: Record | Wording) -> str:
    """Name the chat that a record was learned in, and the messages; nothing if it was learned elsewhere."""
    return write_reference(record.chat, *record.messages) if record.messages else record.chat


def _again(one: Wording, text: str) -> str:
    """Return the wordings and messages of a record's duplicates."""
    words, where = "" if one.text == text else short(one.text), place(one)
    return f"{words} ({where})" if words and where else words or where


def show_record(screen: Screen, record: Record, options: Options) -> None:
    """Print all of a record, and how to read the messages that it comes from."""
    screen.say((called(record.kind, record.target), "bold"), (f"  ({record.id})", "dim"))
    screen.say(f"{record.text}\n", indent=4)
    why = f": {record.why}" if record.why else ""
    meta = {name: value for name, value in record.meta.items() if name != _QUOTE}
    screen.facts(
        (
            "written",
            f"{when(record.created)} by {record.by}, version {record.version} ({record.action}{why})",
        ),
        ("learned", learned(record)),
        ("quote", f"“{record.meta[_QUOTE]}”" if record.meta.get(_QUOTE) else ""),
        ("said", count(record.evidence, "time")),
        ("also", "; ".join(filter(None, dict.fromkeys(_again(one, record.text) for one in record.wordings)))),
        ("true", valid(record)),
        ("category", record.category),
        ("tags", ", ".join(record.tags)),
        ("priority", f"{record.priority} of 10" if record.priority != 5 else ""),
        ("flags", ", ".join(flags(record, verbose=screen.verbose))),
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
