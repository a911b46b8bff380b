"""A run: notes and a pad of one run of an agent, in every prompt of it, and gone at its end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

from holdfast.records.draft import RecordDraft
from holdfast.scratchpad import Pad
from holdfast.store import records, runs
from holdfast.store.pads import ScratchpadKey
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record, Writer, check_flag, check_name
from holdfast.types.current_run import enter, leave

if TYPE_CHECKING:
    from holdfast.chat import Chat, Format, Images
    from holdfast.prompt.window import Policy
    from holdfast.safety.guard import Secrets
    from holdfast.types import Prompt


class Run:
    """Note things for this run only. Made by `Chat.run`; a context manager that ends the run.

    Within the block, in this thread or task, `chat.prompt` shows what the run noted; `run.prompt` does so anywhere.
    Other runs never see it, also those of the same chat at the same time, nor do sub-agents with a chat or a run of
    their own. A run whose process died can be gone on with by its id.
    """

    def __init__(self, chat: Chat, id: str | None) -> None:
        self._chat = chat
        self._memory = chat._memory  # noqa: SLF001 - a run is a part of its chat
        self._open = self._memory._open  # noqa: SLF001 - as above
        self._id = os.urandom(8).hex() if id is None else check_name(id, "The id of a run")
        runs.begin(self._open.database, self._space, chat.id, self._id, self._open.now())

    @property
    def _space(self) -> str:
        return self._memory.scope.space

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._id

    @property
    def chat(self) -> Chat:
        """The session that it is a run of."""
        return self._chat

    @property
    def pad(self) -> Pad:
        """The scratchpad of this run."""
        return Pad(self._open, ScratchpadKey(self._space, self._chat.id, self._id))

    def remember(
        self,
        text: str,
        *,
        category: str = "",
        tags: Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        by: Writer | None = None,
    ) -> Record:
        """Note something for this run; see `Memory.remember`.

        Raises:
            InvalidInput: it cannot be accepted, the notes of the run are full, or the run has ended.

        """
        draft = RecordDraft(
            text,
            "note",
            target="run",
            category=category,
            tags=tags,
            meta=meta,
            priority=priority,
            source=source,
            run=self._id,
        )
        return self._memory._note(draft, chat=self._chat.id, by=by)  # noqa: SLF001 - a part of the memory

    def notes(self) -> list[Record]:
        """Read the notes of this run, those of high priority first."""
        wanted = RecordFilter(kinds=("note",), run=self._id)
        found = records.read(self._open.database, self._space, NOW.version, wanted)
        return sorted(found, key=lambda note: -note.priority)

    def replace(self, what: str, text: str, *, by: Writer | None = None) -> Record:
        """Give one note of this run another text; see `Memory.replace`."""
        return self._memory._change_note(what, text, run=self._id, by=by)  # noqa: SLF001 - a part of the memory

    def retract(self, what: str, *, by: Writer | None = None) -> Record:
        """Take one note of this run back; see `Memory.retract`."""
        return self._memory._change_note(what, None, run=self._id, by=by)  # noqa: SLF001 - as above

    def prompt(
        self,
        budget: int | None = None,
        query: str | None = None,
        *,
        system: str = "",
        limit: int | None = None,
        policy: Policy | None = None,
        images: Images = "keep",
        secrets: Secrets = "mask",
        format: Format = "openai",
        strict: bool = False,
        expand: bool = False,
    ) -> Prompt:
        """Assemble a prompt of the chat that shows what this run noted; see `Chat.prompt`."""
        return self._chat._prompt(  # noqa: SLF001 - as above
            self,
            budget,
            query,
            system=system,
            limit=limit,
            policy=policy,
            images=images,
            secrets=secrets,
            format=format,
            strict=strict,
            expand=check_flag(expand, "expand"),
        )

    def end(self) -> None:
        """End the run: its notes are retracted, its pad is emptied. Ending it twice is harmless."""
        runs.end(self._open.database, self._space, self._id, self._open.now())
        self._open.forget(self._space, run=self._id)

    def __enter__(self) -> Self:
        enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        leave(self)
        self.end()

    def __repr__(self) -> str:
        return f"Run({self._id!r})"
