"""Entries that last for a run, for a session, or for the plan of a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from holdfast.contract import Provider, Session
from holdfast.errors import InvalidInput, shown
from holdfast.records.reader import count_uses, selection
from holdfast.store.record_rows import capped_length
from holdfast.store.records import first_written
from holdfast.text.tokens import estimate_tokens
from holdfast.tools import render
from holdfast.tools.memory_internals import internals_of
from holdfast.tools.paging import Page, PageStart
from holdfast.tools.presets.preset import CAP, Preset, shorten, with_note
from holdfast.tools.read_actions import Cursor
from holdfast.tools.results import ORIGIN
from holdfast.tools.tool import Tool, ToolResult, result, tool_of
from holdfast.types import Record
from holdfast.types.current_run import current_run

Compartment = Annotated[Literal["run", "session", "plan"], "how long it lasts"]
Category = Annotated[str | None, "one word that it belongs to"]
Tags = Annotated[list[str] | None, "words to find it by"]
_NONE = "No memory entries found"
_ECHOED = 100  # tokens of the arguments of a call that its result repeats


def compartment_tools(
    memory: Provider,
    chat: Session,
    *,
    run: object = None,
    plan: Literal["session", "run"] = "session",
    max_tokens: int = CAP,
) -> list[Tool]:
    """Return `save_memory`, `get_memory` and `clear_memory`; their conditions are combined by "and".

    Args:
        memory: the `Memory` that stores the entries.
        chat: the chat that they belong to.
        run: the `Run` of the compartment "run"; None for the current one of the caller, if any.
        plan: what the compartment "plan" belongs to: the chat, or the run, at whose end it is gone.
        max_tokens: of a result at most, about.

    """
    if plan not in ("session", "run"):
        raise InvalidInput(f"`plan` is {shown(plan)}.", "Use 'session' or 'run'.")
    entries = _Compartments(memory, chat, max_tokens, run, plan_of_run=plan == "run")
    return [
        tool_of(
            entries.save,
            "save_memory",
            "Save an entry. "
            "What is saved for the run is in every prompt of it; the rest is there on request.",
        ),
        tool_of(
            entries.get,
            "get_memory",
            "Get the entries of a compartment: "
            "all of them, one by its id, or those of a category and with a tag; a long list in pages.",
            read_only=True,
        ),
        tool_of(
            entries.clear,
            "clear_memory",
            "Clear a compartment, or of it the entries of a category and with a tag.",
            destructive=True,
            idempotent=True,
        ),
    ]


class _Compartments(Preset):
    """The entries of a chat and of its runs."""

    def __init__(self, memory: Provider, chat: Session, cap: int, run: object, *, plan_of_run: bool) -> None:
        super().__init__(memory, chat, cap)
        self._named_run: Any = run
        self._of_run = {"run", "plan"} if plan_of_run else {"run"}

    def save(
        self,
        compartment: Compartment,
        content: Annotated[str, "what to keep"],
        category: Category = None,
        tags: Tags = None,
        metadata: dict[str, object] | None = None,
        priority: Annotated[int, "1 to 10"] = 5,
    ) -> ToolResult:
        details: dict[str, Any] = {"category": category or "", "tags": tags or (), "meta": metadata}
        details["priority"] = priority or 5
        in_chat = partial(self._chat.remember, kind="note")
        remember = self._run().remember if compartment in self._of_run else in_chat
        try:
            saved = remember(content, target=compartment, **details)
        except InvalidInput as error:
            if self._has_room(compartment, Record("", "note", content, meta=metadata or {})):
                raise
            raise InvalidInput(error.what, "Shorten it, or make room with `clear_memory`.") from error
        note = render.join_notes(f"Memory saved with ID {saved.id}.", render.write_note(saved))
        return result({"id": saved.id, "compartment": compartment, "note": note}, note)

    def _has_room(self, compartment: str, entry: Record) -> bool:
        internals = internals_of(self._memory)
        cap = internals.kinds["note"].cap.get(compartment) if internals else None
        if cap is None:
            return True
        return sum(map(capped_length, [entry, *self._entries(compartment, None, None)])) <= cap

    def get(
        self,
        compartment: Compartment,
        id: Annotated[str | None, "of one entry"] = None,
        category: Category = None,
        tags: Tags = None,
        cursor: Cursor = None,
    ) -> ToolResult:
        page = Page(self._cap, estimate_tokens, cursor, (self._chat.id, compartment, id, category, tags))
        first = page.start.item
        matches = [entry for entry in self._entries(compartment, category, tags) if id in (None, entry.id)]
        if not matches:
            return result(with_note({"entries": []}, _NONE), _NONE)
        parts = [replace(entry, text=shorten(entry.text, self._cap)) for entry in matches[first:]]
        taken, _ = self._fit(parts, lambda entry: _as_text(_entry(entry, entry.created)))
        self._note(entry.id for entry in taken)
        # Those that count as used stay before the others, so that the next page begins behind them.
        entries = self._use(taken)
        end = first + len(taken)
        on = {"cursor": page.cursor(PageStart(item=end))} if end < len(matches) else {}
        note = f"{len(matches) - end} more follow with the cursor {on['cursor']}" if on else ""
        text = "\n---\n".join([*map(_as_text, entries), *([note] if note else [])])
        return result(with_note({"entries": entries, **on}, note), f"({ORIGIN})\n{text}")

    def clear(self, compartment: Compartment, category: Category = None, tags: Tags = None) -> ToolResult:
        if compartment in self._of_run:
            run = self._run()
            cleared = [run.retract(entry.id) for entry in self._entries(compartment, category, tags)]
        else:
            where = {"target": compartment, "chat": self._chat.id, "category": category, "tags": tags}
            cleared = self._memory.retract_all(kind="note", **where)
        which = f" of category {category}" if category else ""
        which += f" with one of the tags {', '.join(tags)}" if tags else ""
        note = f"Cleared {len(cleared)} entries of {compartment} memory{shorten(which, _ECHOED)}."
        return result({"cleared": len(cleared), "compartment": compartment, "note": note}, note)

    def _entries(self, compartment: str, category: str | None, tags: list[str] | None) -> list[Record]:
        """Return the entries that meet all conditions, by priority and then by number of uses."""
        if compartment in self._of_run:
            _, passes = selection(self._memory.scope, {}, category=category, tags=tags)
            entries = filter(passes, self._run().notes(compartment))
        else:
            where = {"target": compartment, "chat": self._chat.id, "category": category, "tags": tags}
            entries = self._memory.records(kind="note", **where)
        return sorted(entries, key=lambda note: (-note.priority, -note.uses))

    def _use(self, entries: list[Record]) -> list[dict[str, object]]:
        """Count a use of entries, and return all their fields."""
        internals = internals_of(self._memory)
        if internals is None:
            return [_entry(entry, entry.created) for entry in entries]
        scope = self._memory.scope
        database = internals.database_of(scope)
        created = first_written(database, scope.space, [entry.id for entry in entries])
        used = count_uses(database, scope, internals.kinds, internals.now(), entries)
        return [_entry(entry, created.get(entry.id)) for entry in used]

    def _run(self) -> Any:
        run = self._named_run or current_run(self._chat, self._memory.scope.agent)
        if run is None:
            other = "session" if "plan" in self._of_run else "session' or 'plan"
            raise InvalidInput("No run is going on.", f"Use the compartment '{other}'.")
        return run


def _entry(record: Record, created: datetime | None) -> dict[str, object]:
    return {
        "id": record.id,
        "content": record.text,
        "category": record.category,
        "tags": list(record.tags),
        "metadata": dict(record.meta),
        "priority": record.priority,
        "created": render.moment(created),
        "updated": render.moment(record.created),
        "uses": record.uses,
    }


def _as_text(entry: Mapping[str, Any]) -> str:
    metadata = json.dumps(entry["metadata"], ensure_ascii=False) if entry["metadata"] else ""
    values = {**entry, "tags": ", ".join(entry["tags"]), "metadata": metadata}
    titles = {"id": "ID", "uses": "Access count"}
    return "\n".join(
        f"{titles.get(name, name.capitalize())}: {' '.join(str(value).split())}"
        for name, value in values.items()
        if value != ""
    )
