"""What an agent can write down and change: records, profile, constraints, notes, the scratchpad."""

from __future__ import annotations

from typing import Annotated

from holdfast.errors import Denied, InvalidInput
from holdfast.scratchpad import TEMPORARY
from holdfast.tools import paging, render
from holdfast.tools.action_base import Bound, Cursor, Id, Limit, call, counted, nothing, quoted, short
from holdfast.tools.paging import Place
from holdfast.tools.permissions import takes
from holdfast.tools.results import Changes, Constrained, Entry, Item, Noted, Profiled, Scratched, Written
from holdfast.types import Change, Record

_NOTES = {
    "duplicate": "This was known already.",
    "update": "It took the place of what was known.",
    "retract": "It is taken back.",
}


class Keeping(Bound):
    """Write for an agent, and read what it wrote. A part of `Actions`.

    A call that goes on with a cursor only reads: what it was given to write, the call before has written.
    """

    def remember(self, text: str, kind: str = "fact") -> Written:
        """Store one thing that is known.

        Raises:
            InvalidInput: it cannot be accepted; nothing was stored.
            Denied: it may not be written, or the user did not confirm it.

        """
        self._begin("remember", text=text)
        if kind not in self._kinds:
            raise InvalidInput(f"{short(kind)} is no kind.", f"Use one of {', '.join(self._kinds)}.")
        by = self._writer(kind, f"Add the constraint {quoted(text)}?")
        return _written(call(self._provider.remember, text, kind, by=by, chat=self._in_chat()))

    def update(self, id: Id, text: Annotated[str, "the whole new text"]) -> Written:
        """Give a record another text.

        Raises:
            InvalidInput: there is no such record, or the text cannot be accepted.
            Denied: it may not be changed, or the user did not confirm it.

        """
        self._begin("update", text=text)
        record = self._record(id)
        by = self._writer(record.kind, f"Replace the constraint {quoted(record.text)} by {quoted(text)}?")
        return _written(call(self._provider.replace, record.id, text, by=by, chat=self._in_chat()))

    def forget(self, id: Id) -> Written:
        """Take a record back; it stays in the history.

        Raises:
            InvalidInput: there is no such record.
            Denied: it may not be removed, or the user did not confirm it.

        """
        self._begin("forget", id=id)
        record = self._record(id)
        by = self._writer(record.kind, f"Remove the constraint {quoted(record.text)}?")
        return _written(call(self._provider.retract, record.id, by=by, chat=self._in_chat()))

    def history(
        self,
        kind: Annotated[str | None, "of records"] = None,
        id: Annotated[str | None, "of one record"] = None,
        limit: Limit = 10,
        restore: Annotated[int | None, "version to take `id` or `kind` back to"] = None,
        cursor: Cursor = None,
    ) -> Changes:
        """List what changed, the newest first; or write again what a record, or a kind, was at a version.

        Raises:
            InvalidInput: there is no such record, kind or version.
            Denied: it may not be changed, or the user did not confirm it.

        """
        self._begin("history", id=id, restore=restore)
        of, place = self._place(cursor, "history", kind, id)
        note = "" if restore is None or cursor else self._restored(id or kind, restore)
        changes, newest = self._changes(kind, id, place, counted(limit))
        items = [render.of_change(change, min(300, self._cap // 8)) for change in changes[: counted(limit)]]
        fitting, _ = self._pager.fill(items, "after")
        on = None
        if len(fitting) < len(changes):
            on = paging.write(Place(str(newest), place.item + len(fitting)), of)
        return Changes(
            changes=tuple(fitting), cursor=on, note=note or ("" if fitting else "No history found.")
        )

    def _changes(
        self, kind: str | None, record: str | None, place: Place, limit: int
    ) -> tuple[list[Change], int]:
        """Read changes from a place on, one more than the limit if there are, and the version that was the newest at first.

        What came since the first page is not counted, so that no page shows again what the one before has shown.
        """
        newest = paging.number(place.start) if place.start else None
        newer = self._provider.version() - newest if newest and "versions" in self._setting.can else 0
        chosen = record is None or takes(self._provider.changes, "id")
        wanted = place.item + limit + 1 + newer if chosen else None
        while True:
            found: list[Change] = call(self._provider.changes, kind=kind, id=record, limit=wanted)
            versions = [change for change in found if change.version]  # compactions and erasures are none
            older = [
                change
                for change in versions
                if (newest is None or change.version <= newest) and record in (None, change.id)
            ]
            if wanted is None or len(found) < wanted or len(older) > place.item + limit:
                return older[place.item :], newest or (versions[0].version if versions else 0)
            wanted *= 2

    def _restored(self, what: str | None, version: int) -> str:
        if what is None:
            raise InvalidInput("It is not said what to restore.", "Pass `id` or `kind` as well.")
        identity, kind, text = self._named(what)
        meant = f"the constraint {quoted(text)}" if text else "the constraints"
        by = self._writer(kind, f"Take {meant} back to version {version}?")
        try:
            done = self._provider.rollback(identity, version, by=by)
        except InvalidInput as error:
            raise InvalidInput(error.what, "Use an id, or a kind, and a version of `history`.") from error
        self._advance()
        return f"Restored as {len(done)} new version{'' if len(done) == 1 else 's'}."

    def _named(self, what: str) -> tuple[str, str, str]:
        """Give what is to be restored, its kind, and of a single record its text."""
        record = self._found(what)
        if record is not None:
            return record.id, record.kind, record.text
        changes, _ = self._changes(None, what, Place(), 1)  # of one that was taken back
        if changes:
            return what, changes[0].kind, changes[0].before or changes[0].after or ""
        return what, what, ""

    # What stands in every prompt -------------------------------------------------------------------------------------

    def profile(
        self,
        text: Annotated[str | None, "new profile, whole"] = None,
        soul: Annotated[str | None, "new soul, whole"] = None,
        cursor: Cursor = None,
    ) -> Profiled:
        """Read the profile of the user and what the agent is to them, after writing what is given.

        Raises:
            InvalidInput: a text is blank or too long.
            Denied: it may not be written.

        """
        self._begin("profile", text=text, soul=soul)
        of, place = self._place(cursor, "profile")
        chat = self._in_chat()
        said = []
        if text is not None and not cursor:
            said.append(render.became(call(self._provider.set_profile, text, by=self._by, chat=chat)))
        if soul is not None and not cursor:
            said.append(render.became(call(self._provider.set_soul, soul, by=self._by, chat=chat)))
        both = {"profile": self._provider.profile(), "soul": self._provider.soul()}
        items = [Item(id=kind, kind=kind, text=said) for kind, said in both.items() if said]
        fitting, on = self._page(items[place.item :], place, of)
        pieces = {item.kind: item.text for item in fitting}
        return Profiled(
            profile=pieces.get("profile", ""),
            soul=pieces.get("soul", ""),
            cursor=on,
            note=_together(*said, "" if items else "No profile notes found."),
        )

    def constraints(
        self,
        add: str | None = None,
        remove: Annotated[str | None, "id"] = None,
        cursor: Cursor = None,
    ) -> Constrained:
        """List what always holds, after adding or removing one that the user confirmed.

        Raises:
            InvalidInput: there is no such constraint, or it cannot be accepted.
            Denied: the user did not confirm it.

        """
        self._begin("constraints", add=add, remove=remove)
        of, place = self._place(cursor, "constraints")
        chat, said = self._in_chat(), ""
        if add is not None and not cursor:
            by = self._writer("constraint", f"Add the constraint {quoted(add)}?")
            said = render.became(call(self._provider.add_constraint, add, by=by, chat=chat))
        if remove is not None and not cursor:
            known = {one.id: one for one in self._provider.constraints()}
            if remove not in known:
                raise nothing(remove)
            by = self._writer("constraint", f"Remove the constraint {quoted(known[remove].text)}?")
            call(self._provider.remove_constraint, remove, by=by, chat=chat)
        items = [render.of_record(one) for one in self._provider.constraints()]
        fitting, on = self._page(items[place.item :], place, of)
        return Constrained(
            constraints=tuple(fitting),
            cursor=on,
            note=_together(said, "" if items else "No constraints set."),
        )

    # What an agent keeps for itself ----------------------------------------------------------------------------------

    def notes(
        self,
        add: str | None = None,
        remove: Annotated[str | None, "id"] = None,
        search: Annotated[str | None, "only with this in the text"] = None,
        cursor: Cursor = None,
    ) -> Noted:
        """Read the notes of the session, after adding or removing one.

        Raises:
            InvalidInput: there is no such note, it cannot be accepted, or there is no room for it.

        """
        self._begin("notes", add=add, remove=remove)
        of, place = self._place(cursor, "notes", search)
        said = ""
        if add is not None and not cursor:
            said = render.became(
                call(self._provider.remember, add, "note", by=self._by, chat=self._in_chat())
            )
        if remove is not None and not cursor:
            there = call(self._provider.records, kind="note", chat=self._in_chat())
            if remove not in [one.id for one in there]:
                raise nothing(remove)
            call(self._provider.retract, remove, by=self._by, chat=self._in_chat())
        found = call(self._provider.records, kind="note", chat=self._in_chat())
        part = (search or "").casefold()
        items = [render.of_record(one) for one in found if part in one.text.casefold()]
        fitting, on = self._page(items[place.item :], place, of)
        return Noted(
            notes=tuple(fitting), cursor=on, note=_together(said, "" if items else "No notes found.")
        )

    def scratchpad(
        self,
        name: Annotated[str | None, "read only this one"] = None,
        value: Annotated[str | None, "keep it under `name`"] = None,
        remove: Annotated[str | None, "name"] = None,
        search: Annotated[str | None, "only with this in name or value"] = None,
        cursor: Cursor = None,
    ) -> Scratched:
        """Read what is on the scratchpad, after writing or removing a value.

        Raises:
            InvalidInput: a name or a value cannot be used, or there is nothing to remove.
            Denied: the value looks like a credential.

        """
        self._begin("scratchpad", value=value, remove=remove)
        of, place = self._place(cursor, "scratchpad", name, search)
        pad = self._provider.pad
        for one in (name, remove):
            if one is not None and one.startswith(TEMPORARY):
                raise Denied(
                    f"Names that begin with {TEMPORARY} are the application's own.", "Use another name."
                )
        if value is not None and not cursor:
            if name is None:
                raise InvalidInput("The value has no name.", "Pass `name` as well.")
            pad[name] = value
        if remove is not None and not cursor:
            if remove not in pad:
                raise InvalidInput(
                    f"Nothing is kept as {short(remove)}.", "Read the scratchpad for its names."
                )
            del pad[remove]
        kept = pad.stored() if hasattr(pad, "stored") else dict(pad)  # a view would read each name by itself
        part = (search or "").casefold()
        items = [
            Entry(name=one, value=text, warning=render.warning_of(one, text))
            for one, text in sorted(kept.items())
            if name in (None, one) and (part in one.casefold() or part in text.casefold())
        ]
        fitting, on = self._page(items[place.item :], place, of, field="value")
        return Scratched(entries=tuple(fitting), cursor=on, note="" if items else "No matches found.")


def _together(*notes: str) -> str:
    return " ".join(note for note in notes if note)


def _written(record: Record) -> Written:
    note = f"{render.became(record)} {_NOTES.get(record.action, '')}".strip()
    return Written(id=record.id, kind=record.kind, did=record.action, version=record.version, note=note)
