"""Entries that last for a run, for a session, or for the plan of a session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, cast

from holdfast.errors import InvalidInput
from holdfast.records.view import selection
from holdfast.run import current_run
from holdfast.store.record_rows import capped_length
from holdfast.store.records import first_written
from holdfast.tools import render
from holdfast.tools.presets.fitting import CAP, LEFT_OUT, fitting, shortened
from holdfast.tools.results import ORIGIN
from holdfast.tools.tool import Tool, ToolResult, result, tool_of
from holdfast.types import Record

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.run import Run

Compartment = Annotated[Literal["run", "session", "plan"], "how long it lasts"]
Category = Annotated[str | None, "one word that it belongs to"]
Tags = Annotated[list[str] | None, "words to find it by"]
_NONE = "No memory entries found"
_ECHOED = 100  # tokens of what a call was given that its result repeats


def compartment_tools(
    memory: Memory, chat: Chat, *, run: Run | None = None, token_cap: int = CAP
) -> list[Tool]:
    """Make `save_memory`, `get_memory` and `clear_memory`; what is got or cleared meets all of the conditions.

    Args:
        memory: where entries are kept.
        chat: the session they belong to.
        run: the run that the compartment "run" is of; None for the one that the call is made within, if any.
        token_cap: tokens of a result at most, about.

    """
    shelf = _Shelf(memory, chat, run, token_cap)
    return [
        tool_of(
            shelf.save,
            "save_memory",
            "Save an entry. What is saved for the run is in every prompt of it; the rest is there on request.",
        ),
        tool_of(
            shelf.get,
            "get_memory",
            "Get the entries of a compartment: all of them, one by its id, or those of a category and with a tag.",
            read_only=True,
        ),
        tool_of(
            shelf.clear,
            "clear_memory",
            "Clear a compartment, or of it the entries of a category and with a tag.",
            destructive=True,
            idempotent=True,
        ),
    ]


class _Shelf:
    """Keep the entries of a session and of its runs."""

    def __init__(self, memory: Memory, chat: Chat, run: Run | None, cap: int) -> None:
        self._memory = memory
        self._chat = chat
        self._run = run
        self._cap = cap

    def save(
        self,
        compartment: Compartment,
        content: Annotated[str, "what to keep"],
        category: Category = None,
        tags: Tags = None,
        metadata: dict[str, object] | None = None,
        priority: Annotated[int, "1 to 10"] = 5,
    ) -> ToolResult:
        try:
            saved = self._saved(compartment, content, category or "", tags or (), metadata, priority or 5)
        except InvalidInput as error:
            if self._has_room(compartment, content, metadata or {}):
                raise
            raise InvalidInput(error.what, "Shorten it, or make room with `clear_memory`.") from error
        said = " ".join(part for part in (f"Memory saved with ID {saved.id}.", render.became(saved)) if part)
        return result({"id": saved.id, "compartment": compartment, "note": said}, said)

    def _saved(
        self,
        compartment: str,
        content: str,
        category: str,
        tags: Sequence[str],
        meta: Mapping[str, object] | None,
        priority: int,
    ) -> Record:
        if compartment == "run":
            return self._running().remember(
                content, category=category, tags=tags, meta=meta, priority=priority
            )
        return self._chat.remember(
            content,
            "note",
            target=compartment,
            category=category,
            tags=tags,
            meta=meta,
            priority=priority,
        )

    def _has_room(self, compartment: str, content: str, meta: Mapping[str, object]) -> bool:
        opened = render.opened_of(self._memory)
        cap = opened.kinds["note"].cap.get(compartment) if opened else None
        if cap is None:
            return True
        if compartment == "run":
            run = self._run or current_run(self._chat)
            held = run.notes() if run else []
        else:
            held = self._memory.records(kind="note", target=compartment, chat=self._chat.id)
        return capped_length(Record("", "note", content, meta=meta)) + sum(map(capped_length, held)) <= cap

    def get(
        self,
        compartment: Compartment,
        id: Annotated[str | None, "of one entry"] = None,
        category: Category = None,
        tags: Tags = None,
    ) -> ToolResult:
        found = [one for one in self._entries(compartment, category, tags) if id in (None, one.id)]
        if not found:
            return result({"origin": ORIGIN, "entries": [], "note": _NONE}, _NONE)
        cut = [replace(one, text=shortened(one.text, self._cap)) for one in found]
        taken, left = fitting(cut, _written, self._cap)
        render.note(self._memory, self._chat, [one.id for one in taken])
        rest = {"note": LEFT_OUT.format(left)} if left else {}
        entries = self._used(taken)
        text = "\n---\n".join([*map(_as_text, entries), *rest.values()])
        return result({"origin": ORIGIN, "entries": entries, **rest}, f"({ORIGIN})\n{text}")

    def clear(self, compartment: Compartment, category: Category = None, tags: Tags = None) -> ToolResult:
        if compartment == "run":
            run = self._running()
            cleared = [run.retract(one.id) for one in self._entries("run", category, tags)]
        else:
            cleared = self._memory.clear(
                kind="note", target=compartment, chat=self._chat.id, category=category, tags=tags
            )
        which = f" of category {category}" if category else ""
        which += f" with one of the tags {', '.join(tags)}" if tags else ""
        said = f"Cleared {len(cleared)} entries of {compartment} memory{shortened(which, _ECHOED)}."
        return result({"cleared": len(cleared), "compartment": compartment, "note": said}, said)

    def _entries(self, compartment: str, category: str | None, tags: list[str] | None) -> list[Record]:
        """Read the entries that meet all conditions, those of high priority and the often used first."""
        if compartment == "run":
            passes = selection(category=category, tags=tags)
            found = [note for note in self._running().notes() if passes(note)]
        else:
            found = self._memory.records(
                kind="note", target=compartment, chat=self._chat.id, category=category, tags=tags
            )
        return sorted(found, key=lambda note: (-note.priority, -note.uses))

    def _used(self, found: list[Record]) -> list[Mapping[str, object]]:
        """Count that entries were asked for, and show them with all that is known of them."""
        opened = render.opened_of(self._memory)
        if opened is None:
            return [_entry(one, one.created) for one in found]
        scope = self._memory.scope
        created = first_written(opened.database, scope.space, [one.id for one in found])
        return [_entry(one, created.get(one.id)) for one in opened.used(scope, found)]

    def _running(self) -> Run:
        run = self._run or current_run(self._chat)
        if run is None:
            raise InvalidInput("No run is going on.", "Use the compartment 'session' or 'plan'.")
        return run


def _entry(record: Record, created: datetime | None) -> Mapping[str, object]:
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


def _written(record: Record) -> str:
    return _as_text(_entry(record, record.created))


def _as_text(entry: Mapping[str, object]) -> str:
    fields = {
        "ID": entry["id"],
        "Content": entry["content"],
        "Category": entry["category"],
        "Tags": ", ".join(map(str, cast("list[str]", entry["tags"]))),
        "Metadata": json.dumps(entry["metadata"], ensure_ascii=False) if entry["metadata"] else "",
        "Priority": entry["priority"],
        "Created": entry["created"],
        "Updated": entry["updated"],
        "Access count": entry["uses"],
    }
    return "\n".join(
        f"{name}: {' '.join(str(value).split())}" for name, value in fields.items() if value != ""
    )
