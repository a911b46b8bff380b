"""The actions of an agent on a memory: typed functions of plain values, over any provider of the contract.

Tools, the MCP server and integrations are made of them. The signatures describe the parameters;
`Actions.available` returns the actions that are permitted. They return the dataclasses of
`holdfast.tools.results`, within a limit of tokens, and raise the errors of Holdfast.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Annotated

from holdfast.errors import Denied, InvalidInput
from holdfast.store.pads import TEMPORARY
from holdfast.tools import results
from holdfast.tools.json_schema import quoted_argument
from holdfast.tools.memory_internals import internals_of
from holdfast.tools.paging import PageStart
from holdfast.tools.permissions import call, takes, write_text
from holdfast.tools.read_actions import Cursor, Id, Limit, ReadActions, check_limit, quoted, unknown_id
from holdfast.tools.render import join_notes, of_change, of_record, text_of, warning_of, write_note
from holdfast.types import Change, ChatStats, Record

_NOTES = {
    "duplicate": "This was known already.",
    "update": "It took the place of what was known.",
    "retract": "It is taken back.",
}


class Actions(ReadActions):
    """Act on a memory for an agent.

    A call that continues with a cursor only reads: its other arguments were written by the call before.

    Args:
        provider: the memory.
        chat: the session in which the agent acts, or its id; None for no session.
        confirm: asks the user a question about a change of a constraint, and returns whether they agreed. A
            model cannot call it. Without it, constraints cannot be changed.
        read_only: True to permit no writes, or the parts that are read-only: "records", "profile", "soul",
            "constraints", "notes", "scratchpad". These cannot be rolled back either.
        max_tokens: of a result at most; its cursor leads to the rest. Texts are cut, names and ids are not:
            with a limit below 1,000, very long ones may exceed it.

    Raises:
        InvalidInput: an option is of the wrong kind, or `confirm` has to be awaited.

    """

    def remember(self, text: str, kind: str = "fact") -> results.WriteResult:
        """Store one record.

        Raises:
            InvalidInput: it cannot be accepted; nothing was stored.
            Denied: it may not be written.

        """
        self._begin("remember", text=text)
        if kind not in self._kinds:
            what = f"Unknown kind {quoted_argument(kind)}."
            raise InvalidInput(what, f"Use one of {', '.join(self._kinds)}.")
        return _write_result(call(self._provider.remember, text, kind, by="agent", chat=self._in_chat()))

    def update(self, id: Id, text: Annotated[str, "the whole new text"]) -> results.WriteResult:
        """Replace the text of a record.

        Raises:
            InvalidInput: there is no such record, or the text cannot be accepted.
            Denied: it may not be changed, or the user did not confirm it.

        """
        self._begin("update", text=text)
        record = self._record(self._own(id))
        by = self._writer(record.kind, f"Replace the constraint {quoted(record.text)} by {quoted(text)}?")
        return _write_result(call(self._provider.replace, record.id, text, by=by, chat=self._in_chat()))

    def forget(self, id: Id) -> results.WriteResult:
        """Retract a record; it stays in the history.

        Raises:
            InvalidInput: there is no such record.
            Denied: it may not be removed, or the user did not confirm it.

        """
        self._begin("forget", id=id)
        record = self._record(self._own(id))
        by = self._writer(record.kind, f"Remove the constraint {quoted(record.text)}?")
        return _write_result(call(self._provider.retract, record.id, by=by, chat=self._in_chat()))

    def history(
        self,
        kind: Annotated[str | None, "of records"] = None,
        id: Annotated[str | None, "of one record"] = None,
        limit: Limit = 10,
        restore: Annotated[int | None, "version to take `id` or `kind` back to"] = None,
        cursor: Cursor = None,
    ) -> results.ChangePage:
        """Return changes, newest first, after restoring a record or a kind to a version if one is passed.

        Raises:
            InvalidInput: there is no such record, kind or version.
            Denied: it may not be changed, or the user did not confirm it.

        """
        self._begin("history", id=id, restore=restore)
        id = self._own(id) if id else id
        page = self._page(cursor, "history", kind, id)
        note = "" if restore is None or cursor else self._restore(id or kind, restore)
        changes, newest = self._changes(kind, id, page.start, check_limit(limit))
        items = [of_change(change, min(300, self._cap // 8)) for change in changes[:limit]]
        fitting, _ = page.fill(items, "after")
        on = PageStart(str(newest), page.start.item + len(fitting)) if len(fitting) < len(changes) else None
        return results.ChangePage(
            changes=tuple(fitting),
            cursor=page.cursor(on) if on else None,
            note=note or ("" if fitting else "No history found."),
        )

    def _changes(
        self, kind: str | None, record: str | None, start: PageStart, limit: int
    ) -> tuple[list[Change], int]:
        """Return changes from a position on, one above the limit, and the newest version of the first page.

        Changes since the first page are left out, so that no page repeats a change of the one before.
        """
        newest = start.number
        newer = self._provider.version() - newest if newest and "versions" in self._permissions.can else 0
        by_id = record is None or takes(self._provider.changes, "id")
        most = start.item + limit + 1 + newer if by_id else None
        while True:
            matches: list[Change] = call(self._provider.changes, kind=kind, id=record, limit=most)
            # Compactions and erasures are changes without a version.
            versions = [change for change in matches if change.version]
            older = [
                change
                for change in versions
                if (newest is None or change.version <= newest) and record in (None, change.id)
            ]
            if most is None or len(matches) < most or len(older) > start.item + limit:
                return older[start.item :], newest or (versions[0].version if versions else 0)
            most *= 2

    def _restore(self, what: str | None, version: int) -> str:
        if what is None:
            raise InvalidInput("It is not said what to restore.", "Pass `id` or `kind` as well.")
        identity, kind, text = self._find_restorable(what)
        subject = f"the constraint {quoted(text)}" if text else "the constraints"
        by = self._writer(kind, f"Take {subject} back to version {version}?")
        try:
            done = self._provider.rollback(identity, version, by=by)
        except InvalidInput as error:
            raise InvalidInput(error.what, "Use an id, or a kind, and a version of `history`.") from error
        if self._session and "snapshots" in self._permissions.can and self._chat.snapshot() is not None:
            # Prompts show the snapshot, which is older.
            self._chat.refresh()
        return f"Restored as {len(done)} new version{'' if len(done) == 1 else 's'}."

    def _find_restorable(self, what: str) -> tuple[str, str, str]:
        """Return the id or kind to restore, its kind, and the text of a single record."""
        record = self._find(what)
        if record is not None:
            return record.id, record.kind, record.text
        # A retracted record.
        changes, _ = self._changes(None, what, PageStart(), 1)
        if changes:
            return what, changes[0].kind, changes[0].before or changes[0].after or ""
        return what, what, ""

    def profile(
        self,
        text: Annotated[str | None, "new profile, whole"] = None,
        soul: Annotated[str | None, "new soul, whole"] = None,
        cursor: Cursor = None,
    ) -> results.ProfilePage:
        """Return the profile of the user and the soul of the agent, after writing those that are passed.

        Raises:
            InvalidInput: a text is blank or too long.
            Denied: it may not be written.

        """
        self._begin("profile", text=text, soul=soul)
        page = self._page(cursor, "profile")
        notes = []
        for new, kind in ((text, "profile"), (soul, "soul")):
            if new is not None and not cursor:
                record = write_text(self._provider, kind, new, self._in_chat())
                notes.append(write_note(record))
        texts = {kind: text_of(self._provider.get(kind)) for kind in ("profile", "soul")}
        items = [results.MemoryItem(id=kind, kind=kind, text=text) for kind, text in texts.items() if text]
        fitting, on = page.take(items)
        there = {item.kind: item.text for item in fitting}
        note = join_notes(*notes, "" if items else "No profile notes found.")
        return results.ProfilePage(
            profile=there.get("profile", ""), soul=there.get("soul", ""), cursor=on, note=note
        )

    def constraints(
        self, add: str | None = None, remove: Annotated[str | None, "id"] = None, cursor: Cursor = None
    ) -> results.ConstraintPage:
        """Return the constraints, after adding or removing one, which the user has to confirm.

        Raises:
            InvalidInput: there is no such constraint, or it cannot be accepted.
            Denied: the user did not confirm it.

        """
        self._begin("constraints", add=add, remove=remove)
        page = self._page(cursor, "constraints")
        note = "" if cursor else self._edit("constraint", add, remove)
        listed = [of_record(record) for record in self._of_kind("constraint")]
        items, on = page.take(listed)
        note = join_notes(note, "" if listed else "No constraints set.")
        return results.ConstraintPage(constraints=items, cursor=on, note=note)

    def notes(
        self,
        add: str | None = None,
        remove: Annotated[str | None, "id"] = None,
        search: Annotated[str | None, "only with this in the text"] = None,
        cursor: Cursor = None,
    ) -> results.NotePage:
        """Return the notes of the session, after adding or removing one.

        Raises:
            InvalidInput: there is no such note, it cannot be accepted, or the notes would be too long.

        """
        self._begin("notes", add=add, remove=remove)
        page = self._page(cursor, "notes", search)
        note = "" if cursor else self._edit("note", add, remove)
        part = (search or "").casefold()
        listed = [of_record(record) for record in self._of_kind("note") if part in record.text.casefold()]
        items, on = page.take(listed)
        note = join_notes(note, "" if listed else "No notes found.")
        return results.NotePage(notes=items, cursor=on, note=note)

    def _of_kind(self, kind: str) -> list[Record]:
        """Return all records of a kind, of notes those of the session."""
        chat = self._in_chat() if kind == "note" else None
        records: list[Record] = call(self._provider.records, kind=kind, chat=chat)
        return records

    def _edit(self, kind: str, add: str | None, remove: str | None) -> str:
        """Add a record of a kind, remove another, and return a note about the one that was added."""
        note = ""
        if add is not None:
            by = self._writer(kind, f"Add the constraint {quoted(add)}?")
            note = write_note(call(self._provider.remember, add, kind, by=by, chat=self._in_chat()))
        if remove is not None:
            known = {record.id: record.text for record in self._of_kind(kind)}
            if remove not in known:
                raise unknown_id(remove)
            by = self._writer(kind, f"Remove the constraint {quoted(known[remove])}?")
            call(self._provider.retract, remove, by=by, chat=self._in_chat())
        return note

    def scratchpad(
        self,
        name: Annotated[str | None, "read only this one"] = None,
        value: Annotated[str | None, "keep it under `name`"] = None,
        remove: Annotated[str | None, "name"] = None,
        search: Annotated[str | None, "only with this in name or value"] = None,
        cursor: Cursor = None,
    ) -> results.ScratchpadPage:
        """Return the values of the scratchpad, after writing or removing one.

        Raises:
            InvalidInput: a name or a value is invalid, or there is nothing to remove.
            Denied: the value looks like a credential.

        """
        self._begin("scratchpad", value=value, remove=remove)
        page = self._page(cursor, "scratchpad", name, search)
        pad = self._provider.scratchpad
        for argument in (name, remove):
            check_own(argument or "")
        if value is not None and not cursor:
            if name is None:
                raise InvalidInput("The value has no name.", "Pass `name` as well.")
            pad[name] = value
        if remove is not None and not cursor:
            if remove not in pad:
                what = f"Nothing is kept as {quoted_argument(remove)}."
                raise InvalidInput(what, "Read the scratchpad for its names.")
            del pad[remove]
        entries = [
            results.ScratchpadItem(name=key, value=text, warning=warning_of(key, text))
            for key, text in matching(pad, search or "")
            if name in (None, key)
        ]
        items, on = page.take(entries, field="value")
        return results.ScratchpadPage(entries=items, cursor=on, note="" if entries else "No matches found.")

    def status(self) -> results.Status:
        """Return the name of the memory, how it recalls, its actions, and the size of the session."""
        stats, own = self._chat.stats() if self._session else ChatStats(), internals_of(self._provider)
        return results.Status(
            memory=self._provider.name,
            recall="" if own is None else f"by words {'and meaning' if own.embedder else 'alone'}",
            can=tuple(action.name for action in self.available() if action.name != "status"),
            session=self._session,
            messages=stats.messages,
            tokens=stats.stored_tokens,
            context_tokens=stats.context_tokens,
            version=self._provider.version() if "versions" in self._permissions.can else 0,
        )


def check_own(name: str, what: str = "name") -> None:
    """Raise Denied for a name of a scratchpad that belongs to the application."""
    if name.startswith(TEMPORARY):
        problem = f"{what.capitalize()}s that begin with {TEMPORARY} are the application's own."
        raise Denied(problem, f"Use another {what}.")


def matching(pad: MutableMapping[str, str], search: str) -> list[tuple[str, str]]:
    """Return the names and values of a scratchpad with a text in either, ignoring case, sorted."""
    # `dict` would read each value separately.
    stored = pad.stored() if hasattr(pad, "stored") else dict(pad)
    part = search.casefold()
    return [pair for pair in sorted(stored.items()) if any(part in word.casefold() for word in pair)]


def _write_result(record: Record) -> results.WriteResult:
    note = join_notes(write_note(record), _NOTES.get(record.action, ""))
    return results.WriteResult(
        id=record.id, kind=record.kind, did=record.action, version=record.version, note=note
    )
