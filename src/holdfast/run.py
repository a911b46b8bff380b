"""A run: notes and a scratchpad of one run of an agent, in every prompt of it, and gone at its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar

from holdfast.errors import InvalidInput, shown
from holdfast.prompt.assembly import PromptMaker
from holdfast.prompt.build import PromptOptions
from holdfast.records.draft import OF_RUNS
from holdfast.scratchpad import Scratchpad
from holdfast.store import records, runs
from holdfast.store.pads import ScratchpadKey
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record, Scope, Writer, check_name
from holdfast.types.current_run import enter, leave

if TYPE_CHECKING:
    from holdfast.contract import Session
    from holdfast.records.options import RecordFields
    from holdfast.runtime import Runtime
    from holdfast.types import Prompt

# The class of the chat, which this module does not know.
C = TypeVar("C", bound="Session")


class Run(PromptMaker, Generic[C]):
    """Notes and a scratchpad for one run only. Made by `Chat.run`; a context manager that ends the run.

    Within the block, in this thread or task, `chat.prompt` shows what the run noted; `run.prompt` does so
    anywhere. Other runs never see it, also those of the same chat at the same time, nor do sub-agents with a
    chat or a run of their own, nor, unless it is `shared`, handles of other agents on the same chat. A run
    whose process died can be gone on with by its id.
    """

    def __init__(
        self,
        chat: C,
        id: str | None,
        runtime: Runtime,
        scope: Scope,
        prompt: Callable[[Run[C], int | None, str | None, PromptOptions], Prompt],
        *,
        shared: bool = False,
    ) -> None:
        self._chat = chat
        self._shared = shared
        self._runtime = runtime
        self._scope = scope
        self._make_prompt = prompt
        self._id = os.urandom(8).hex() if id is None else check_name(id, "The id of a run")
        runs.begin(runtime.database_of(scope), scope.space, chat.id, self._id, runtime.now())

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._id

    @property
    def chat(self) -> C:
        """The chat that it is a run of."""
        return self._chat

    @property
    def scratchpad(self) -> Scratchpad:
        """The scratchpad of this run."""
        place = ScratchpadKey(self._scope.space, self._chat.id, self._id)
        return Scratchpad(self._runtime, place, self._scope)

    def remember(
        self,
        text: str,
        *,
        target: Literal["run", "plan"] = "run",
        category: str = "",
        tags: str | Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        by: Writer | None = None,
    ) -> Record:
        """Note something for this run; see `Memory.remember`.

        Args:
            text: what is known.
            target: "run", or "plan" for a step of the plan of this run.
            category: one word for what it belongs to.
            tags: words to find it by.
            meta: JSON values.
            priority: 1 to 10; the higher are shown first; None for 5.
            by: who writes; see `Memory`.

        Raises:
            InvalidInput: it cannot be accepted, the notes of the run are full, or the run has ended.

        """
        writer = self._runtime.writer(self._scope, self._chat.id)
        fields: RecordFields = {
            "target": target,
            "category": category,
            "tags": tags,
            "meta": meta,
            "priority": priority,
        }
        return writer.note(text, run=self._id, by=by, **fields)

    def notes(self, target: Literal["run", "plan"] | None = None) -> list[Record]:
        """Read the notes of this run, those of high priority first.

        Args:
            target: "run", or "plan" for those of its plan; None for both.

        Raises:
            InvalidInput: another target.

        """
        if target not in (None, *OF_RUNS):
            raise InvalidInput(f"A run has no {shown(target)} notes.", f"Use one of {', '.join(OF_RUNS)}.")
        wanted = RecordFilter(kinds=("note",), run=self._id, target=target)
        notes = records.read(self._runtime.database_of(self._scope), self._scope.space, NOW.version, wanted)
        return sorted(notes, key=lambda note: -note.priority)

    def replace(self, what: str, text: str, *, by: Writer | None = None) -> Record:
        """Replace the text of one note of this run; see `Memory.replace`.

        Args:
            what: the id of the note, or a part of its text.
            text: the new text.
            by: who writes; see `Memory`.

        """
        return self._runtime.writer(self._scope).change_note(what, text, run=self._id, by=by)

    def retract(self, what: str, *, by: Writer | None = None) -> Record:
        """Take one note of this run back; see `Memory.retract`.

        Args:
            what: the id of the note, or a part of its text.
            by: who retracts it; see `Memory`.

        """
        return self._runtime.writer(self._scope).change_note(what, None, run=self._id, by=by)

    def _assemble(self, budget: int | None, query: str | None, options: PromptOptions) -> Prompt:
        return self._make_prompt(self, budget, query, options)

    def end(self) -> None:
        """End the run: its notes are retracted, its scratchpad is emptied. Ending it twice is harmless."""
        space, runtime = self._scope.space, self._runtime
        runs.end(runtime.database_of(self._scope), space, self._id, runtime.now())
        runtime.forget(space, run=self._id)

    def __enter__(self) -> Self:
        enter(self, None if self._shared else self._scope.agent)
        return self

    def __exit__(self, *_: object) -> None:
        leave(self)
        self.end()

    def __repr__(self) -> str:
        return f"Run({self._id!r})"
