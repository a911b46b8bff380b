"""One chat: its log, its window, its prompt, and the summaries of its older part."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack, cast, overload

from holdfast.compaction.explorer import SearchOptions, SearchScope, SummaryExplorer
from holdfast.errors import InvalidInput, shown
from holdfast.events import logged
from holdfast.messages.fields import MessageFields, from_fields
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import check_list, ready
from holdfast.prompt.assembly import PromptOptions
from holdfast.prompt.knowledge_block import run_text
from holdfast.prompt.window import Lossless, Policy, SummaryBuffer
from holdfast.records.options import RecordFilters
from holdfast.records.view import count_uses
from holdfast.run import Run
from holdfast.scratchpad import Scratchpad, fill_system_text
from holdfast.store import log, prompt_receipts, sessions, snapshots
from holdfast.store.pads import ScratchpadKey
from holdfast.types import (
    AnyMessage,
    ChatStats,
    CompactionResult,
    Description,
    Expansion,
    Hit,
    Job,
    Message,
    Prompt,
    Receipt,
    Record,
    Scope,
    Summary,
    Time,
    Window,
    check_count,
    check_flag,
    check_name,
)
from holdfast.types.current_run import current_run

if TYPE_CHECKING:
    from holdfast.compaction.compactor import Progress
    from holdfast.learning.results import Extraction
    from holdfast.llm.model import LLM
    from holdfast.records.options import RememberOptions
    from holdfast.runtime import Runtime


class Chat:
    """Append to a chat and read it back. Made by `Memory.chat`; handles of one chat are equal."""

    def __init__(
        self, runtime: Runtime, scope: Scope, id: str, label: sessions.ChatLabel | None = None
    ) -> None:
        self._runtime = runtime
        self._scope = scope
        self._database = runtime.database_of(scope)
        self._id = check_name(id, "The id of a chat")
        # Until the next message is stored.
        self._label = label

    @property
    def id(self) -> str:
        """The id of the chat, unique within its space."""
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chat):
            return NotImplemented
        same_database = self._runtime is other._runtime
        return same_database and self._id == other._id and self._scope.space == other._scope.space

    def __hash__(self) -> int:
        return hash((self._id, self._scope.space))

    @overload
    def append(self, messages: Sequence[AnyMessage], /) -> list[Message]: ...
    @overload
    def append(self, message: AnyMessage, /) -> Message: ...
    @overload
    def append(self, messages: None = None, /, **fields: Unpack[MessageFields]) -> Message: ...
    @logged
    def append(
        self, messages: Sequence[AnyMessage] | AnyMessage | None = None, /, **fields: Unpack[MessageFields]
    ) -> Message | list[Message]:
        """Store one message, or many in one transaction, and return them as stored.

        When the call returns they are durable, readable and recallable. Pass the fields of one message by
        name; or a `Message`, a dict in the OpenAI or Anthropic chat format, or the message of a client's
        response, such as `response.choices[0].message` (whatever has `model_dump`), also if it says nothing;
        or a list of these. The
        same `id` twice in one chat is one message. Calls are serialized per chat, across threads and
        processes; an empty list does nothing.

        Raises:
            InvalidInput: a message is empty, has an unknown role, or is otherwise not a message; none was
                stored.
            Conflict: another message is stored under the same id; none was stored.

        """
        if messages is None:
            return self._store([from_fields(**fields)])[0]
        if any(fields.values()):
            raise InvalidInput(
                "A message is given, and fields of a message beside it.", "Put the fields into the message."
            )
        if isinstance(messages, Message | Mapping) or hasattr(messages, "model_dump"):
            return self._store([messages])[0]
        return self._store(messages) if check_list(messages) else []

    def _store(self, messages: Sequence[AnyMessage]) -> list[Message]:
        runtime, scope = self._runtime, self._scope
        # Workers give way.
        runtime.workers.appended = time.monotonic()
        drafts = [ready(item) for item in messages]
        tokens = [message_tokens(message, runtime.count_tokens) for message in drafts]
        asked = runtime.prompts.asked(scope.space, self._id)
        stored = log.append(
            self._database, scope, self._id, drafts, tokens, runtime.now(), asked, self._label
        )
        self._label = None
        if asked.unstored and any(one.role == "assistant" for one in stored):
            runtime.prompts.hold(scope.space, self._id, None)
        return stored

    @logged
    def history(
        self, limit: int | None = None, *, before: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Read messages, oldest first.

        A limit gives the latest; page back with `before=` the first `seq` of what you have. `after=` reads
        the other way: the first messages after that `seq`, from the beginning with `after=0`. An unknown chat
        has none.
        """
        return log.read(
            self._database,
            self._scope.space,
            self._id,
            limit=None if limit is None else check_count(limit, "limit"),
            before=None if before is None else check_count(before, "before"),
            after=None if after is None else check_count(after, "after"),
        )

    def stats(self) -> ChatStats:
        """Count messages and tokens, zero for an unknown chat; `stats().info` is that of `Memory.chats`."""
        database, scope = self._database, self._scope
        with database.one_read():
            info = sessions.info(database, scope, self._id)
            return replace(sessions.stats(database, scope.space, self._id), info=info)

    @logged
    def window(
        self, budget: int | None = None, *, tail: int | None = None, policy: Policy | None = None
    ) -> Window:
        """Return what a model will see of the chat: summaries of the older part, then the newest messages.

        Of at most `budget` tokens, but for what the policy guarantees, such as the newest `tail` messages;
        see `ChatReader.window`.
        """
        return self._runtime.reader(self._scope, self._id).window(budget, tail, policy)

    @logged
    def prompt(
        self,
        budget: int | None = None,
        query: str | None = None,
        **options: Unpack[PromptOptions],
    ) -> Prompt:
        """Assemble a prompt in one budget: system text, what is known, the window, and what recall finds.

        A budget of None is that of the policy; what is known is shown whole. `query` is what to recall,
        usually the user's newest message; None recalls nothing. See `ChatReader.prompt`, `PromptOptions`.
        """
        run = current_run(self)
        return self._prompt(run if isinstance(run, Run) else None, budget, query, options)

    def _prompt(
        self, run: Run[Chat] | None, budget: int | None, query: str | None, options: PromptOptions
    ) -> Prompt:
        def notes() -> str:
            return run_text(run.notes(), run.scratchpad.stored()) if run else ""

        pads = self.scratchpad, run.scratchpad if run else None
        options = fill_system_text(self._runtime, self._scope, options, *pads)
        return self._runtime.reader(self._scope, self._id).prompt(budget, query, options, notes)

    def receipts(self, limit: int | None = None) -> list[Receipt]:
        """Read what the answered prompts of this chat were made of, oldest first; a limit gives the latest.

        There is one for each answer, the first assistant's message that was appended after a prompt, in this
        process or another; they are kept for the newest 2,000 messages. An unknown chat has none.
        """
        most = None if limit is None else check_count(limit, "limit")
        return prompt_receipts.read(self._database, self._scope.space, self._id, most)

    def refresh(self) -> int:
        """Let the next prompt show what is known now, and return that version.

        The chat does it by itself when it remembers something: `remember`, or `Memory.remember(…, chat=…)`.
        """
        return snapshots.advance(self._database, self._scope, self._id, self._runtime.now())

    def snapshot(self) -> int | None:
        """Return the version that the prompts of this chat show; None before the first one."""
        return found.version if (found := snapshots.read(self._database, self._scope, self._id)) else None

    @logged
    def remember(self, text: str, kind: str = "fact", **options: Unpack[RememberOptions]) -> Record:
        """Store something that was learned in this chat; see `Memory.remember`. The next prompt shows it."""
        if options.setdefault("chat", self._id) not in (None, self._id):
            raise InvalidInput(
                f"`chat` is {shown(options['chat'])}.", "Leave it out, or call `Memory.remember`."
            )
        options["chat"] = self._id
        return cast("Record", self._runtime.writer(self._scope).remember(text, kind, **options))

    def notes(
        self,
        target: str | None = None,
        *,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        text: str | None = None,
    ) -> list[Record]:
        """Read the notes of this chat, those of high priority and the often used first. Each counts as used.

        `target` is "session" or "plan", None for both; for the others see `RecordFilters`.
        """
        runtime = self._runtime
        filters = RecordFilters(
            kind="note", target=target, chat=self._id, category=category, tags=tags, text=text
        )
        found = runtime.view(self._scope).records(**filters)
        found.sort(key=lambda note: (-note.priority, -note.uses))
        return count_uses(self._database, self._scope, runtime.kinds, runtime.now(), found)

    @property
    def scratchpad(self) -> Scratchpad:
        """The scratchpad of this chat: a dict of texts that is kept."""
        return Scratchpad(self._runtime, ScratchpadKey(self._scope.space, self._id), self._scope)

    def run(self, id: str | None = None) -> Run[Chat]:
        """Begin a run of this chat, for `with chat.run() as run`; or resume an interrupted one by its id.

        One that has ended, or is one of another chat, raises Conflict.
        """
        return Run(self, id, self._runtime, self._scope, self._prompt)

    def needs_compaction(
        self,
        budget: int | None = None,
        threshold: float | None = None,
        *,
        policy: Lossless | SummaryBuffer | None = None,
    ) -> bool:
        """Return whether the chat takes more than a share of the budget, and compaction can change that.

        See `ChatCompactor.is_due`.
        """
        return self._runtime.compactor(self._scope, self._id).is_due(budget, threshold, policy)

    @logged
    def compact(
        self,
        *,
        full: bool = False,
        budget: int | None = None,
        llm: LLM | None = None,
        progress: Progress | None = None,
        policy: Lossless | SummaryBuffer | None = None,
        prompts: Mapping[str, str] | None = None,
    ) -> CompactionResult:
        """Let summaries stand for the older messages; the log keeps every word, and `expand` returns them.

        Goes over the chat once if it needs compaction; with `full`, on until it is under its target; see
        `ChatCompactor.compact`.
        """
        return self._runtime.compactor(self._scope, self._id).compact(
            full=full, budget=budget, llm=llm, progress=progress, policy=policy, prompts=prompts
        )

    def tree(self) -> list[Summary]:
        """List all summaries of the chat, leaves first, each level in the order of the messages."""
        return self._explorer.tree()

    def describe(self, id: str) -> Description:
        """Describe a summary, of this chat or of another one of the same user, and its place in the tree."""
        return self._explorer.describe(id)

    @logged
    def expand(self, id: str, max_tokens: int = 4_000, *, cursor: str | None = None) -> Expansion:
        """Read what stands behind a summary: the messages of a leaf, the children of a condensed one."""
        return self._explorer.expand(id, max_tokens, cursor=cursor)

    @logged
    def search(
        self, query: str, scope: SearchScope = "both", limit: int = 20, **options: Unpack[SearchOptions]
    ) -> list[Hit]:
        """Find messages and summaries of this chat by words or a pattern, each with a snippet of the match.

        See `SummaryExplorer.search`, and `SearchOptions` for regex, since, before, sort and secrets.
        """
        return self._explorer.search(query, scope, limit, **options)

    def review(
        self,
        since: Time | None = None,
        *,
        after: int | None = None,
        limit: int = 200,
        budget: int | None = None,
    ) -> str:
        """Write the chat as text for a reviewer: what is new since a time, after summaries of the rest."""
        count = self._runtime.count_tokens
        return self._explorer.review(since, after=after, limit=limit, budget=budget, count_tokens=count)

    def end(self) -> list[Job]:
        """Mark the chat as ended, and return the jobs this queues: to learn from it, to write its episode.

        They are done by the next `memory.learning.work`. The chat may go on all the same; see
        `Learning.idle`.
        """
        # What learns is loaded by those who do.
        from holdfast.learning.job_queue import end_chat

        own = self._runtime
        return end_chat(self._database, self._scope.space, self._id, own.learning.kinds, own.now)

    def extract(
        self,
        *,
        messages: int | tuple[int, int] | None = None,
        step: str = "",
        type: str = "",
        llm: LLM | None = None,
    ) -> Extraction:
        """Extract findings, insights and lessons from the chat, and remember them; see `Learner.extract`.

        What the agent recalled, and what its prompts showed it from memory, is not learned again.
        """
        # A chat is of one scope, so there is none to check.
        learner = self._runtime.learner(self._scope, lambda _: None)
        return learner.extract(chat=self._id, messages=messages, step=step, type=type, llm=llm)

    def rename(
        self,
        title: str | None = None,
        *,
        channel: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        """Set the title, the channel or the metadata; None leaves each as it is.

        They are part of no prompt and no search, and are erased with the chat.

        Args:
            title: until it is given, it is the beginning of the first user message. Credentials are cut out.
            channel: where the chat takes place, such as "telegram"; `Memory.chats(channel=…)` lists its
                chats, and "" takes it away.
            meta: any JSON object. Its keys replace those of the same name, all others stay, and None takes
                one away.

        Raises:
            InvalidInput: the chat has no messages yet, nothing is given, the title is blank, the channel is
                no name or holds a credential, or the metadata is no JSON object.

        """
        label = sessions.check_label(channel, meta)
        if title is None and label is None:
            raise InvalidInput("Nothing is given to change.", "Pass a title, channel= or meta=.")
        if title is not None:
            sessions.rename(self._database, self._scope.space, self._id, title)
        if label is not None:
            sessions.relabel(self._database, self._scope.space, self._id, label)

    def archive(self, *, archived: bool = True) -> None:
        """Archive the chat, so that lists leave it out, or bring it back. It stays readable and recallable.

        A chat without messages raises InvalidInput.
        """
        check_flag(archived, "archived")
        sessions.archive(self._database, self._scope.space, self._id, archived=archived)

    @property
    def _explorer(self) -> SummaryExplorer:
        return self._runtime.explorer(self._scope, self._id)

    def __repr__(self) -> str:
        return f"Chat({self._id!r})"
