"""One chat: its log, its window, its prompt, and the summaries of its older part."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

from holdfast.branching import Branching, head_of
from holdfast.compaction.explorer import SearchScope, Sort, SummaryExplorer
from holdfast.errors import InvalidInput
from holdfast.events import logged
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import check_list, ready
from holdfast.prompt.assembly import PromptMaker
from holdfast.prompt.build import PromptOptions
from holdfast.prompt.knowledge_block import run_text
from holdfast.prompt.window import Lossless, Policy, SummaryBuffer
from holdfast.records.reader import count_uses
from holdfast.records.remember import Rememberer
from holdfast.run import Run
from holdfast.safety.guard import Secrets
from holdfast.scratchpad import Scratchpad, fill_system_text
from holdfast.store import log, prompt_receipts, sessions, snapshots
from holdfast.store.branches import path_to
from holdfast.store.pads import ScratchpadKey
from holdfast.types import (
    AnyMessage,
    Branch,
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
    Role,
    Scope,
    Summary,
    Time,
    ToolCall,
    Window,
    as_time,
    check_count,
    check_flag,
    check_name,
)
from holdfast.types.current_run import current_run

if TYPE_CHECKING:
    from holdfast.compaction.compactor import Progress
    from holdfast.learning.results import Extraction
    from holdfast.llm.model import LLM
    from holdfast.records.writing import RecordWriter
    from holdfast.runtime import Runtime


class Chat(Rememberer, PromptMaker, Branching):
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
    def append(
        self,
        message: AnyMessage | None = None,
        /,
        *,
        role: Role | None = None,
        content: str = "",
        id: str = "",
        name: str | None = None,
        at: Time | None = None,
        calls: ToolCall | Sequence[ToolCall] = (),
        call_id: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Message: ...
    @logged
    def append(
        self,
        messages: Sequence[AnyMessage] | AnyMessage | None = None,
        /,
        *,
        role: Role | None = None,
        content: str = "",
        id: str = "",
        name: str | None = None,
        at: Time | None = None,
        calls: ToolCall | Sequence[ToolCall] = (),
        call_id: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Message | list[Message]:
        """Store one message, or many in one transaction, and return them as stored.

        When the call returns they are durable, readable and recallable. Calls are serialized per chat, across
        threads and processes; an empty list does nothing.

        Args:
            messages: a `Message`, a dict in the OpenAI or Anthropic chat format, or the message of a client's
                response, such as `response.choices[0].message` (whatever has `model_dump`), also if it says
                nothing; or a list of these. None where the fields of one message are passed by name.
            role: "user", "assistant", "tool", "system" or "developer".
            content: what is said.
            id: yours, or one that is made; the same twice in one chat is one message.
            name: the speaker, beside the role.
            at: when it was said; None for now.
            calls: the tool calls of an assistant.
            call_id: the call that a tool message answers.
            meta: JSON values.

        Raises:
            InvalidInput: a message is empty, has an unknown role, or is otherwise not a message; none was
                stored.
            Conflict: another message is stored under the same id; none was stored.

        """
        if messages is None:
            if role is None:
                raise InvalidInput(
                    "There is nothing to append.", "Pass role= and content=, a message, or a list."
                )
            called = (calls,) if isinstance(calls, ToolCall) else tuple(calls or ())
            when = as_time(at, "at")
            message = Message(
                role, content, id=id, name=name, at=when, calls=called, call_id=call_id, meta=meta or {}
            )
            return self._store([message])[0]
        if any((role, content, id, name, at, calls, call_id, meta)):
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
        last_prompt = runtime.prompts.last_prompt(scope.space, self._id)
        stored = log.append(
            self._database, scope, self._id, drafts, tokens, runtime.now(), last_prompt, self._label
        )
        self._label = None
        if last_prompt.unstored and any(message.role == "assistant" for message in stored):
            runtime.prompts.hold(scope.space, self._id, None)
        return stored

    @logged
    def history(
        self,
        limit: int | None = None,
        *,
        before: int | None = None,
        after: int | None = None,
        branch: Branch | int | None = None,
    ) -> list[Message]:
        """Read messages, oldest first; an unknown chat has none.

        Args:
            limit: the latest so many; page back with `before`.
            before: only messages with a smaller `seq`: the first of what you have.
            after: reads the other way, the first messages after that `seq`; 0 for the beginning.
            branch: of `branches`, or its `head`; None for the current one.

        Raises:
            InvalidInput: a negative number, or no branch of the chat.

        """
        place = self._database, self._scope.space, self._id
        return log.read(
            *place,
            limit=None if limit is None else check_count(limit, "limit"),
            before=None if before is None else check_count(before, "before"),
            after=None if after is None else check_count(after, "after"),
            # It is the same for ever.
            path=None if branch is None else path_to(*place, head_of(branch)),
        )

    def stats(self) -> ChatStats:
        """Count messages and tokens, zero for an unknown chat; `stats().info` is that of `Memory.chats`."""
        database, scope = self._database, self._scope
        with database.one_read():
            info = sessions.info(database, scope, self._id, self._runtime.clock().tzinfo)
            return replace(sessions.stats(database, scope.space, self._id), info=info)

    @logged
    def window(
        self, budget: int | None = None, *, tail: int | None = None, policy: Policy | None = None
    ) -> Window:
        """Return what a model will see of the chat: summaries of the older part, then the newest messages.

        Costs what the window costs, however long the chat is. A large tool result in a turn that is over, or
        no longer fits, is shown as a placeholder, which says how it begins and where it is;
        `window.shortened` names each.

        Args:
            budget: tokens at most; exceeded only by what the policy guarantees, and the window says so. None
                for that of the policy, 8,000 by default.
            tail: the newest messages that are there whatever they cost; None leaves that to the policy.
            policy: how to choose, at this budget; see `holdfast.prompt.window`. None for that of
                `Memory(policy=…)`: by default `Lossless`, which shows the summaries and all
                messages after them while that fits, and never less than the newest request.

        Raises:
            InvalidInput: a negative budget or tail, or a tail beside a policy, which has its own.

        """
        return self._runtime.reader(self._scope, self._id).window(budget, tail, policy)

    def _assemble(self, budget: int | None, query: str | None, options: PromptOptions) -> Prompt:
        run = current_run(self, self._scope.agent)
        return self._prompt(run if isinstance(run, Run) else None, budget, query, options)

    def _prompt(
        self, run: Run[Chat] | None, budget: int | None, query: str | None, options: PromptOptions
    ) -> Prompt:
        def notes() -> str:
            return run_text(run.notes(), run.scratchpad.stored()) if run else ""

        pads = self.scratchpad, run.scratchpad if run else None
        system = fill_system_text(self._runtime, self._scope, options.system, *pads)
        options = replace(options, system=system)
        return self._runtime.reader(self._scope, self._id).prompt(budget, query, options, notes)

    def receipts(self, limit: int | None = None) -> list[Receipt]:
        """Read what the answered prompts of this chat were made of, oldest first.

        There is one for each answer, the first assistant's message that was appended after a prompt, in this
        process or another; they are kept for the newest 2,000 messages. An unknown chat has none.

        Args:
            limit: the latest so many; None for all.

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
        snapshot = snapshots.read(self._database, self._scope, self._id)
        return snapshot.version if snapshot else None

    @property
    def _writer(self) -> RecordWriter:
        return self._runtime.writer(self._scope, self._id)

    def notes(
        self,
        target: str | None = None,
        *,
        category: str | None = None,
        tags: str | Iterable[str] | None = None,
        text: str | None = None,
    ) -> list[Record]:
        """Read the notes of this chat, those of high priority and the often used first. Each counts as used.

        Args:
            target: "session" or "plan"; None for both.
            category, tags, text: as for `Memory.records`.

        """
        runtime = self._runtime
        view, own = runtime.view(self._scope), self._id
        notes = view.records(kind="note", target=target, chat=own, category=category, tags=tags, text=text)
        notes.sort(key=lambda note: (-note.priority, -note.uses))
        return count_uses(self._database, self._scope, runtime.kinds, runtime.now(), notes)

    @property
    def scratchpad(self) -> Scratchpad:
        """The scratchpad of this chat: a dict of texts that is kept."""
        return Scratchpad(self._runtime, ScratchpadKey(self._scope.space, self._id), self._scope)

    def run(self, id: str | None = None, *, shared: bool = False) -> Run[Chat]:
        """Begin a run of this chat, for `with chat.run() as run`; or resume an interrupted one by its id.

        Args:
            id: of the run; None for a new one.
            shared: whether the prompts that handles of other agents make of this chat within the block show
                what the run notes, such as those of a sub-agent.

        Raises:
            Conflict: the run has ended, or is one of another chat.

        """
        return Run(self, id, self._runtime, self._scope, self._prompt, shared=check_flag(shared, "shared"))

    def needs_compaction(
        self,
        budget: int | None = None,
        threshold: float | None = None,
        *,
        policy: Lossless | SummaryBuffer | None = None,
    ) -> bool:
        """Return whether the chat takes more than a share of the budget, and compaction can change that.

        Args:
            budget: tokens of the window; what a prompt leaves to it is `prompt.tokens["room"]`. None for that
                of the policy.
            threshold: the share of the budget, above 0; None for that of the policy, 0.75 by default.
            policy: how the window is made, at this budget; None for that of `Memory(policy=…)`.

        Raises:
            InvalidInput: a negative budget, a threshold that is no share, or a policy that does not say how
                to compact.

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

        The newest turns are never touched, tool calls never parted from their results. The chat may be
        appended to meanwhile. Of two compactions at once, one ends with a conflict, which its result names.

        Args:
            full: False goes over the chat once if it needs compaction, which is what to call after each turn;
                True goes on until the chat is under its target, nothing more can be done, or a limit of the
                policy is reached (24 calls of a model, 120 seconds).
            budget: tokens of the window that the chat is to fit, as for `needs_compaction`.
            llm: what writes the summaries: a function from text to text, synchronous or not, or, with the
                extra `llm`, a model of pydantic-ai or its name. None for sentences of the messages.
            progress: called after each summary with the result so far, and before a model is asked: then its
                `why` names the messages. On another thread where the call is awaited.
            policy: how the window is made, at this budget; its `compaction` has all limits.
            prompts: others, by "leaf", "condensed" and "arc": a version ("v1") or the path of a file.

        Raises:
            InvalidInput: a negative budget, no model, a wrong prompt, or a policy that cannot compact.
            ModelFailed: the model raised an error. What was stored before stays; nothing is stored half.
            MissingExtra: the model needs a package that is not installed.

        """
        # Only for those who compact.
        from holdfast.compaction.compactor import CompactOptions

        options = CompactOptions(full, budget, progress, policy, prompts)
        return self._runtime.compactor(self._scope, self._id).compact(llm, options)

    def tree(self) -> list[Summary]:
        """List all summaries of the chat, leaves first, each level in the order of the messages."""
        return self._explorer.tree()

    def describe(self, id: str) -> Description:
        """Describe a summary, of this chat or of another one of the same user, and its place in the tree.

        Args:
            id: of the summary.

        Raises:
            InvalidInput: there is no such summary in this space.

        """
        return self._explorer.describe(id)

    @logged
    def expand(self, id: str, max_tokens: int = 4_000, *, cursor: str | None = None) -> Expansion:
        """Read what stands behind a summary: the messages of a leaf, the children of a condensed one.

        Args:
            id: of a summary of this chat, or of another one of the same user.
            max_tokens: tokens at most; but always one item at least, so that walking on reaches everything.
            cursor: where to go on, from the expansion before.

        Raises:
            InvalidInput: there is no such summary in this space, or the cursor is none of it.

        """
        return self._explorer.expand(id, max_tokens, cursor=cursor)

    @logged
    def search(
        self,
        query: str,
        scope: SearchScope = "both",
        limit: int = 20,
        *,
        regex: bool = False,
        since: Time | None = None,
        before: Time | None = None,
        sort: Sort | None = None,
        secrets: Secrets = "mask",
    ) -> list[Hit]:
        r"""Find messages and summaries of this chat by words or a pattern, each with a snippet of the match.

        As `Memory.recall`, but within this chat, and the texts of hits are cut to 500 characters. Without
        `regex`, all characters of the query are plain text, and one without letters and digits finds nothing.

        Args:
            query: words, or with `regex` a pattern.
            scope: "messages", "summaries" or "both".
            limit: at most so many hits.
            regex: the query is a regular expression, such as `r"ORA-\d{5}"`, for the words as they are shown,
                masked or not, as for `re`, with `^` and `$` at each line, `(?i)` at its start for any case,
                and no lookarounds or backreferences. Takes time that is linear in the length of the chat.
            since: only what was said at this time or later; of summaries the latest message counts.
            before: only what was said before this time.
            sort: "relevance", best first, which a regular expression has not; "newest" or "oldest" first.
                None for "relevance", and for "newest" with `regex`. Of words the best hits are put in order.
            secrets: "mask" or "show", as in `Memory.recall`.

        Raises:
            InvalidInput: an unknown scope or sort order, a query that is not text, a negative limit, what is
                no time, or no such regular expression.

        """
        return self._explorer.search(
            query, scope, limit, regex=regex, since=since, before=before, sort=sort, secrets=secrets
        )

    def review(
        self,
        since: Time | None = None,
        *,
        after: int | None = None,
        limit: int = 200,
        budget: int | None = None,
    ) -> str:
        """Write the chat as text for a reviewer: what is new since a time, after summaries of the rest.

        Everything in it is framed as data. "" for an unknown chat, and where nothing was said since. Where
        messages between the summaries and those shown are left out, a line says how many.

        Args:
            since: the messages after this time; None for those of the whole chat.
            after: only messages with a larger `seq`.
            limit: the newest so many of them.
            budget: of these, the newest that take about so many tokens as they are written here, and one at
                least; None for all.

        Raises:
            InvalidInput: `since` is no time, or a negative number.

        """
        count = self._runtime.count_tokens
        return self._explorer.review(since, after=after, limit=limit, budget=budget, count_tokens=count)

    def end(self) -> list[Job]:
        """Mark the chat as ended, and return the jobs this queues: to learn from it, to write its episode.

        They are done by the next `memory.learning.work`. The chat may go on all the same; see
        `Learning.idle`.
        """
        # Only for those who learn.
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

        Args:
            messages: the `seq` of one message, or of the first and the last; None for all that are new.
            step: the name of the step; the id of the chat by default.
            type: its type, such as "GOAL"; the records have the source "{type}:{step}".
            llm: the model, as for `compact`.

        Raises:
            InvalidInput: an argument of the wrong type, unknown messages, or an invalid model.

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
            title: until it is given, it is the command that the user began with, or the heading of a plan, or
                the first sentence, or else the file that was edited last. Credentials are cut out.
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

        Args:
            archived: False brings it back.

        Raises:
            InvalidInput: the chat has no messages.

        """
        check_flag(archived, "archived")
        sessions.archive(self._database, self._scope.space, self._id, archived=archived)

    @property
    def _explorer(self) -> SummaryExplorer:
        return self._runtime.explorer(self._scope, self._id)

    def __repr__(self) -> str:
        return f"Chat({self._id!r})"
