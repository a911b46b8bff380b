"""One session: its log, its window, its prompt."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args, overload

from holdfast.compaction.explorer import Digest, resolved
from holdfast.errors import BudgetExceeded, InvalidInput, shown
from holdfast.logs import logged
from holdfast.messages.media import has_media
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import check_list, ready
from holdfast.prompt.build import PromptStyle, conversation
from holdfast.prompt.build import build as build_prompt
from holdfast.prompt.knowledge_block import (
    KnowledgeBlock,
    fitting_records,
    knowledge_text,
    run_text,
    target_name,
)
from holdfast.prompt.oversize import Placeholders
from holdfast.prompt.recall_block import hit_limit
from holdfast.prompt.selector import choose_window, expected_messages, selector
from holdfast.prompt.window import SUMMARISED, Policy, own_budget, with_tail, within
from holdfast.run import Run
from holdfast.safety.guard import Secrets, is_masked, masked_hit
from holdfast.scratchpad import Pad
from holdfast.store import jobs, log, prompt_receipts, records, sessions, snapshots, summaries
from holdfast.store.database import retry_transaction
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.pads import ScratchpadKey
from holdfast.store.records import AsOf, RecordFilter, RecordOutline
from holdfast.store.snapshots import Snapshot
from holdfast.text.references import write_reference
from holdfast.text.tokens import estimate_tokens
from holdfast.types import (
    AnyMessage,
    ChatInfo,
    ChatStats,
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
    Writer,
    as_time,
    check_count,
    check_flag,
    check_name,
    check_range,
)
from holdfast.types.current_run import current_run

if TYPE_CHECKING:
    from holdfast.learning.results import Extraction
    from holdfast.llm.model import LLM
    from holdfast.memory import Memory
    from holdfast.runtime import Opened
    from holdfast.search.search import SearchReader

Images = Literal["keep", "placeholder"]
IMAGES: tuple[Images, ...] = get_args(Images)
Format = Literal["openai", "anthropic"]
FORMATS: tuple[Format, ...] = get_args(Format)


class Chat(Digest):
    """Append to a session and read it back. Made by `Memory.chat`; holds no state but what it was given there."""

    def __init__(self, memory: Memory, id: str, label: sessions.ChatLabel | None = None) -> None:
        self._memory = memory
        self._id = check_name(id, "The id of a chat")
        self._given = label  # until the next message is stored

    @property
    def id(self) -> str:
        """The id of the session, unique within its space."""
        return self._id

    @overload
    def append(self, messages: Sequence[AnyMessage], /) -> list[Message]: ...
    @overload
    def append(self, message: AnyMessage, /) -> Message: ...
    @overload
    def append(
        self,
        messages: None = None,
        /,
        *,
        role: Role,
        content: str = "",
        id: str = "",
        name: str | None = None,
        at: Time | None = None,
        calls: Sequence[ToolCall] = (),
        call_id: str | None = None,
        raw: Mapping[str, object] | None = None,
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
        calls: Sequence[ToolCall] = (),
        call_id: str | None = None,
        raw: Mapping[str, object] | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Message | list[Message]:
        """Store one message, or many in one transaction, and return them as stored.

        When the call returns they are durable, readable and recallable. Give the fields of one message by name; or a
        `Message`, a dict in the OpenAI or Anthropic chat format, or the message of a client's response, such as
        `response.choices[0].message` (whatever has `model_dump`); or a list of these. The same `id` twice in one chat
        is one message. Calls to one chat from many threads and processes are put in a line; an empty list does nothing.

        Raises:
            InvalidInput: a message is empty, has an unknown role, or is otherwise not a message; none was stored.
            Conflict: another message is stored under the same id; none was stored.

        """
        if messages is None:
            if role is None:
                raise InvalidInput(
                    "There is nothing to append.", "Pass role= and content=, a message, or a list."
                )
            one = Message(
                role,
                content,
                id=id,
                name=name,
                at=as_time(at, "at"),
                calls=tuple(calls or ()),
                call_id=call_id,
                raw=raw,
                meta=meta or {},
            )
            return self._store([one])[0]
        if any((role, content, id, name, at, calls, call_id, raw, meta)):
            raise InvalidInput(
                "A message was given, and fields of a message beside it.", "Put the fields into the message."
            )
        if isinstance(messages, Message | Mapping) or hasattr(messages, "model_dump"):
            return self._store([messages])[0]
        return self._store(messages) if check_list(messages) else []

    def _store(self, messages: Sequence[AnyMessage]) -> list[Message]:
        opened = self._memory._open  # noqa: SLF001 - a chat is a part of its memory
        opened.appended = time.monotonic()  # workers give way
        drafts = [ready(item) for item in messages]
        count = opened.count_tokens
        tokens = [message_tokens(message, count) for message in drafts]
        if count is not estimate_tokens:
            tokens = [check_count(number, "count_tokens") for number in tokens]
        now, scope = to_micros(opened.clock()), self._memory.scope
        asked = opened.asked(scope.space, self._id)
        stored = log.append(opened.database, scope, self._id, drafts, tokens, now, asked, self._given)
        self._given = None
        if asked.unstored and any(one.role == "assistant" for one in stored):
            opened.hold(scope.space, self._id, None)
        return stored

    @logged
    def history(
        self, limit: int | None = None, *, before: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Read messages, oldest first.

        A limit gives the latest; page back with `before=` the first `seq` of what you have. `after=` reads the other
        way: the first messages after that `seq`, from the beginning with `after=0`. An unknown chat has none.

        Raises:
            InvalidInput: a negative number.

        """
        return log.read(
            self._memory._open.database,  # noqa: SLF001 - as above
            self._memory.scope.space,
            self._id,
            limit=None if limit is None else check_count(limit, "limit"),
            before=None if before is None else check_count(before, "before"),
            after=None if after is None else check_count(after, "after"),
        )

    def stats(self) -> ChatStats:
        """Count messages and tokens; all zero for an unknown chat."""
        return sessions.stats(self._memory._open.database, self._memory.scope.space, self._id)  # noqa: SLF001 - as above

    def info(self) -> ChatInfo | None:
        """Describe the session as `Memory.chats` does, with one row read; None for one in which nothing was said yet."""
        return sessions.info(self._memory._open.database, self._memory.scope, self._id)  # noqa: SLF001 - as above

    @logged
    def window(
        self, budget: int | None = None, *, tail: int | None = None, policy: Policy | None = None
    ) -> Window:
        """Choose what a model will see of the session: summaries of the older part, then the newest messages.

        Costs what the window costs, however long the session is. A large result of a tool in a turn that is over is shown
        as a placeholder, which says how it begins and where it is; `window.shortened` names each.

        Args:
            budget: tokens at most; exceeded only by what the policy guarantees, and the window says so. None for that of
                the policy, 8,000 by default.
            tail: the newest messages that are there whatever they cost; None leaves that to the policy.
            policy: how to choose, with its own budget; see `holdfast.prompt.window`. None for that of
                `Memory(policy=…)` with this budget: by default `Lossless`, which shows the summaries and all messages
                after them while that fits, and never less than the newest message.

        Raises:
            InvalidInput: a negative budget or tail, or a tail beside a policy, which has its own.

        """
        opened = self._memory._open  # noqa: SLF001 - as above
        if tail is not None and policy is not None:
            raise InvalidInput("Both a tail and a policy are given.", "Say in the policy what is kept.")
        if budget is not None:
            check_count(budget, "budget")
        policy = with_tail(self._policy(policy, budget), tail)
        with opened.database.one_read():
            stats = self.stats()
            newest_first = self._backward(expected_messages(policy, stats))
            shorten = Placeholders(self._id, opened.count_tokens)
            return choose_window(policy, newest_first, stats, self._frontier(policy, stats), shorten)

    def _backward(self, expected: int, *, images: bool = True) -> Iterator[Message]:
        """Read the messages newest first, with the tokens that they take as they are shown.

        A message with images counts without them where they are not sent, and with them where it was stored before they
        were counted.
        """
        opened = self._memory._open  # noqa: SLF001 - as above
        for message in log.backward(opened.database, self._memory.scope.space, self._id, expected):
            if has_media(message.raw):
                tokens = message_tokens(message, opened.count_tokens, images=images)
                yield replace(message, tokens=tokens)
            else:
                yield message

    def _frontier(self, policy: Policy, stats: ChatStats) -> list[Summary]:
        """Read the summaries that stand for the older part, if there are any and the policy has a use for them."""
        if not stats.summarised or not isinstance(policy, SUMMARISED):
            return []
        return summaries.frontier(self._memory._open.database, self._memory.scope.space, self._id)  # noqa: SLF001 - as above

    @logged
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
        """Assemble a prompt: system text, what is known, the window, and what recall finds for the query, in one budget.

        The first prompt of a chat freezes what is known: constraints, soul, profile and facts are from then on the
        same to the byte, and what others learn meanwhile waits, until the chat itself remembers something or
        `advance` is called. One of a chat that does not exist yet shows what is known now, and writes nothing. Then come
        the notes of the run, if this is called within one, and the window. What was recalled is a message before the
        newest user message, framed as data, with dates and speakers; what the window shows already is not repeated. So
        all before it is as in the prompt of the last turn, for the caches of providers, while the window begins with the
        same message; `tokens["unchanged"]` counts how much that is. All of it is as of one moment, whoever writes meanwhile.

        With a query, the live conversation since its last long pause is kept as far as it fits a quarter of a room of up
        to 4,000 tokens, rising to half of 8,000, with the newest summaries as far as they fit a seventh of it; a turn that
        has not been answered yet is whole. What was recalled fills the rest, and what it does not need is left to the window.

        Args:
            budget: tokens at most for all of it; what is known is shown whole, whatever it takes. None for that of the
                policy, and where it has none for 8,000.
            query: what to recall; usually the user's newest message. None recalls nothing.
            system: your own instructions, which stand first.
            limit: at most so many recalled messages and records; None for as many as fit.
            policy: how to choose the window, within what is left of the budget; None for that of `Memory(policy=…)`.
            images: "keep" sends the images, files and sound of the window as they came in, in the form that the `format` takes;
                "placeholder" is for models that read text only, and a line such as `[image: cat.png]` stands for each.
            secrets: "mask" puts what it is in place of each credential in what was recalled and in summaries; "show" shows
                them as they were said. The messages of this chat itself are always shown as they were said, and what
                placeholders say of them is always masked.
            format: the form of `messages`, whatever they came in. "openai" is that of its chat completions, "anthropic" that
                of its Messages API: blocks, as they came in where that takes them, from turns that alternate and begin
                with the user (with "[…]" where the window begins with the assistant). Results begin the turn after their
                calls, with their images; the system messages of the window end `system`, names are left out, and signed
                reasoning is sent back in the turn that goes on, as it demands. `tokens` are the same in both.
            strict: raise where what is always shown takes more than the budget, in place of saying so in `tokens["over"]`.
            expand: whether the model has the tool `expand`, as among those of `Memory.tools`: then each summary and each
                placeholder says that it gives the original words. The tokens of summaries are counted with that in any case.

        Raises:
            BudgetExceeded: with `strict`, where that is so.
            InvalidInput: a negative budget or limit, a query or a system that is not text, an unknown policy, no such
                way to show images or secrets, or no such format.

        """
        run = current_run(self)
        return self._prompt(
            run,
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

    def _prompt(
        self,
        run: Run | None,
        budget: int | None,
        query: str | None,
        *,
        system: str,
        limit: int | None,
        policy: Policy | None,
        images: Images,
        secrets: Secrets,
        format: Format,
        strict: bool,
        expand: bool,
    ) -> Prompt:
        masked = is_masked(secrets)
        check_flag(strict, "strict")
        opened, scope = self._memory._open, self._memory.scope  # noqa: SLF001 - as above
        given = None if budget is None else check_count(budget, "budget")
        policy = self._policy(policy, given)
        budget = own_budget(policy) if given is None else given
        for text, what in ((system, "`system`"), ("" if query is None else query, "A query")):
            if not isinstance(text, str):
                raise InvalidInput(f"{what} must be text, not {type(text).__name__}.", "Pass a string.")
        if limit is not None:
            check_count(limit, "limit")
        if images not in IMAGES:
            raise InvalidInput(f"`images` is {shown(images)}.", f"Use one of {', '.join(IMAGES)}.")
        if format not in FORMATS:
            raise InvalidInput(f"`format` is {shown(format)}.", f"Use one of {', '.join(FORMATS)}.")
        policy = within(policy, budget)
        # Writes, models and what takes long come before the one read in which all is read that the prompt speaks of.
        snapshots.freeze(opened.database, scope, self._id, opened.now())
        with self._one_read(query) as recalling:
            snapshot, frozen, always = self._always(run)
            room = budget - (opened.count_tokens(f"{system}{always}") if system or always else 0)
            stats = self.stats()
            hits = self._recalled(recalling, query, hit_limit(limit, room), snapshot, frozen.records)
            if masked:
                hits = list(map(masked_hit, hits))
            frontier = self._frontier(policy, stats)
            expected = expected_messages(within(policy, conversation(budget)) if hits else policy, stats)
            newest_first = self._backward(expected, images=images == "keep")
            shorten = Placeholders(self._id, opened.count_tokens, images == "keep", expand)
            prompt = build_prompt(
                selector(policy, newest_first, stats, frontier, shorten),
                hits,
                chat=self._id,
                budget=budget,
                count=opened.count_tokens,
                system=system,
                known=always,
                style=PromptStyle(images == "keep", format == "anthropic", masked, expand),
                unchanged=lambda fingerprint: opened.unchanged((scope, self._id), fingerprint),
            )
        if strict and prompt.tokens["over"]:
            raise BudgetExceeded(
                f"The prompt takes {prompt.tokens['total']:,} tokens at least; the budget is {budget:,}.",
                "Raise the budget, shorten `system`, or choose a policy that keeps less.",
            )
        receipt = Receipt(
            0,
            from_micros(opened.now()),
            snapshot.version,
            snapshot.shared,
            budget,
            type(policy).__name__,
            asdict(policy),
            prompt_receipts.digest(system),
            prompt_receipts.digest(query or ""),
            tuple(one.id for one in prompt.window.summaries),
            tuple(_reference(hit) for hit in prompt.hits),
        )
        self._note(receipt, snapshot, exists=bool(stats.messages))
        return replace(prompt, omitted=frozen.omitted)

    def _note(self, receipt: Receipt, snapshot: Snapshot, *, exists: bool) -> None:
        """Note what a prompt was made of, where whoever stores its answer finds it."""
        opened, space = self._memory._open, self._memory.scope.space  # noqa: SLF001 - as above
        if not opened.worker:
            return
        opened.show(space, self._id, receipt.hits)
        if exists:
            prompt_receipts.note(opened.database, space, self._id, opened.worker, receipt, snapshot.epoch)
        opened.hold(space, self._id, None if exists else receipt)

    def receipts(self, limit: int | None = None) -> list[Receipt]:
        """Read what the prompts of this chat were made of that were answered, oldest first; a limit gives the latest.

        There is one for each answer, the first assistant's message that was appended after a prompt, in this process or
        another; they are kept for the newest 2,000 messages. An unknown chat has none.

        Raises:
            InvalidInput: a negative limit.

        """
        return prompt_receipts.read(
            self._memory._open.database,  # noqa: SLF001 - as above
            self._memory.scope.space,
            self._id,
            None if limit is None else check_count(limit, "limit"),
        )

    def _one_read(self, query: str | None) -> AbstractContextManager[SearchReader | None]:
        """Open the one read that a prompt is made in; with nothing to recall, of the database only.

        A query such as a lone emoji has nothing to search for, and that is no error here.
        """
        opened = self._memory._open  # noqa: SLF001 - as above
        if query is not None:
            from holdfast.search.filters import Filters

            # numpy is loaded by the first recall.
            from holdfast.search.query import has_words

            if has_words(query):
                return opened.search.one_read(self._memory.scope, Filters())
        return opened.database.one_read()

    def _always(self, run: Run | None) -> tuple[Snapshot, KnowledgeBlock, str]:
        """Write what every prompt of the session shows, as of its snapshot, and then what the run noted.

        A chat that does not exist has no snapshot: it is shown what is known now.
        """
        opened, scope = self._memory._open, self._memory.scope  # noqa: SLF001 - as above
        taken = snapshots.read(opened.database, scope, self._id)
        snapshot = taken or snapshots.now(opened.database, scope, opened.now())
        make = partial(_known, opened, scope, snapshot)
        frozen = opened.frozen((scope, snapshot), make) if taken else make()
        noted = run_text(run.notes(), run.pad.stored()) if run else ""
        return snapshot, frozen, "\n\n".join(part for part in (frozen.text, noted) if part)

    def _recalled(
        self,
        read: SearchReader | None,
        query: str | None,
        limit: int,
        snapshot: Snapshot,
        shown: frozenset[str],
    ) -> list[Hit]:
        """Recall for a prompt what is not shown anyway, records as of the snapshot.

        The query itself is not recalled, once it has been appended. Summaries are not wanted: the turns behind them are
        found themselves.
        """
        if read is None or query is None:
            return []
        from holdfast.search.filters import check
        from holdfast.search.query import parse

        opened, scope = self._memory._open, self._memory.scope  # noqa: SLF001 - as above
        moments = {scope.shared.space: AsOf(snapshot.shared), scope.space: AsOf(snapshot.version)}
        at = from_micros(snapshot.at)
        wanted = check(sources=("message", "record"), limit=limit, valid_at=at, as_of=moments)
        whole = {kind.name for kind in opened.kinds.values() if kind.heading and not kind.prompt_budget}
        asked = (self._id, query.strip())
        hits = read.find(parse(query), wanted)
        read.release()
        return [
            hit
            for hit in hits
            if hit.kind not in whole and hit.id not in shown and (hit.chat, hit.text.strip()) != asked
        ]

    def advance(self) -> int:
        """Let the next prompt show what is known now, and return that version.

        It is done when this chat remembers something itself: `remember`, or `Memory.remember(…, chat=…)`.
        """
        opened = self._memory._open  # noqa: SLF001 - as above
        return snapshots.advance(opened.database, self._memory.scope, self._id, opened.now())

    def snapshot(self) -> int | None:
        """Return the version of what is known that the prompts of this chat show; None before the first of a chat that exists."""
        opened = self._memory._open  # noqa: SLF001 - as above
        found = snapshots.read(opened.database, self._memory.scope, self._id)
        return None if found is None else found.version

    def remember(
        self,
        text: str,
        kind: str = "fact",
        *,
        target: str | None = None,
        category: str = "",
        tags: Iterable[str] = (),
        meta: Mapping[str, object] | None = None,
        priority: int | None = None,
        source: str = "",
        since: Time | None = None,
        until: Time | None = None,
        by: Writer | None = None,
        messages: int | tuple[int, int] | None = None,
        merge: bool | None = None,
        expected_version: int | None = None,
    ) -> Record:
        """Store one thing that was learned in this chat; see `Memory.remember`. The next prompt shows it.

        Raises:
            InvalidInput, Denied, Conflict: as `Memory.remember`.

        """
        return self._memory.remember(
            text,
            kind,
            target=target,
            category=category,
            tags=tags,
            meta=meta,
            priority=priority,
            source=source,
            since=since,
            until=until,
            by=by,
            chat=self._id,
            messages=messages,
            merge=merge,
            expected_version=expected_version,
        )

    def notes(
        self,
        target: str | None = None,
        *,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        text: str | None = None,
    ) -> list[Record]:
        """Read the notes of this chat, those of high priority and the often used first. Each counts as used.

        Args:
            target: "session" or "plan"; None for both.
            category: only of this category.
            tags: only with one of these tags at least.
            text: only with this in the text or the category.

        Raises:
            InvalidInput: a filter is of the wrong type.

        """
        found = self._memory.records(
            kind="note", target=target, chat=self._id, category=category, tags=tags, text=text
        )
        found.sort(key=lambda note: (-note.priority, -note.uses))
        return self._memory._open.used(self._memory.scope, found)  # noqa: SLF001 - as above

    @property
    def pad(self) -> Pad:
        """The scratchpad of this chat: a dict of texts that is kept."""
        return Pad(self._memory._open, ScratchpadKey(self._memory.scope.space, self._id))  # noqa: SLF001 - as above

    def run(self, id: str | None = None) -> Run:
        """Begin a run of this chat, for `with chat.run() as run`; or go on with one that was interrupted, by its id.

        Raises:
            Conflict: the run has ended, or is one of another chat.

        """
        return Run(self, id)

    def same_as(self, other: Chat) -> bool:
        """Say whether both are handles on the same session.

        Raises:
            InvalidInput: the other one is no chat.

        """
        try:  # a traced one is none of this class
            return self._id == other.id and self._memory.scope.space == other._memory.scope.space
        except AttributeError as error:
            raise InvalidInput(
                f"{shown(other)} is no chat.", "Pass a handle that Memory.chat made."
            ) from error

    @retry_transaction
    def end(self) -> list[Job]:
        """Say that the session has ended, and return the jobs that this leaves: to learn from it, to write its episode.

        They are done by the next `Memory.work`, wherever that runs; this waits for nothing. The session may go on all
        the same: then there will be more to learn, and the episode is written again. Without this, a session has
        ended when nothing was said for `Learning.idle`.

        Raises:
            InvalidInput: the chat has no messages yet.

        """
        opened, scope = self._memory._open, self._memory.scope  # noqa: SLF001 - as above
        agent = sessions.agent(opened.database, scope.space, self._id)
        kinds = [kind for kind in ("observe", "episode") if kind in opened.learning.kinds]
        with opened.database.writing() as tx:
            tx.lock(scope.space)
            left = [
                jobs.add(tx, scope.space, kind, now=opened.now(), agent=agent, chat=self._id, again=True)
                for kind in kinds
            ]
        return jobs.by_ids(opened.database, scope.space, left)

    def extract(
        self,
        *,
        messages: int | tuple[int, int] | None = None,
        step: str = "",
        type: str = "",
        llm: LLM | None = None,
    ) -> Extraction:
        """Extract findings, insights and lessons from the session, and remember them, each with the messages it came from.

        As `Memory.extract`. What the agent recalled, and what its prompts showed it from memory, is not learned again.

        Args:
            messages: the `seq` of one, or of the first and the last; None for all since the last extraction.
            step: the name of the step that gave them; the chat, by default.
            type: its type; "session" by default.
            llm: the model, as for `compact`; without one, the sentences that tell a decision are kept.

        Raises:
            InvalidInput: there are no such messages, or no such model.

        """
        for value, what in ((step, "step"), (type, "type")):
            check_name(value, what, empty=True)
        span, model = check_range(messages, self._id), resolved(llm)
        database, space = self._memory._open.database, self._memory.scope.space  # noqa: SLF001 - as above
        last, agent = sessions.length(database, space, self._id), sessions.agent(database, space, self._id)
        if span is not None and span[1] > last:
            raise InvalidInput(
                f"There is no message {write_reference(self._id, span[1])}; the last is {write_reference(self._id, last)}.",
                "Pass numbers of its messages.",
            )
        said: dict[str, object] = {"step": step, "type": type or "session"}
        job = None
        if span is not None:
            said["messages"] = list(span)
            job = f"observe {span[0]}-{span[1]}:{self._id}"
        memory = self._memory.scoped(agent=agent)
        return memory._extract(job, self._id, said, model)  # noqa: SLF001 - as above

    def rename(self, title: str) -> None:
        """Give the session a title; until then it is the beginning of the first user message. Credentials are cut out.

        Raises:
            InvalidInput: the chat has no messages yet, or the title is blank.

        """
        sessions.rename(self._memory._open.database, self._memory.scope.space, self._id, title)  # noqa: SLF001 - as above

    def label(self, *, channel: str | None = None, meta: Mapping[str, object] | None = None) -> None:
        """Say where the session takes place, and what else a program wants to know of it; None leaves it as it is.

        Keys of the metadata replace those of the same name, all others stay; a key with None is taken away, as is the
        channel with "". They are part of no prompt and no search, and are erased with the chat.

        Args:
            channel: its name, such as "telegram"; `Memory.chats(channel=…)` lists its chats.
            meta: any JSON object.

        Raises:
            InvalidInput: the chat has no messages yet, the channel is no name or holds a credential, or the metadata is
                no JSON object.

        """
        said = sessions.check_label(channel, meta)
        if said is None:
            raise InvalidInput("Nothing is said of the chat.", "Pass channel= or meta=.")
        self._relabel(said)

    def _relabel(self, said: sessions.ChatLabel) -> None:
        sessions.relabel(self._memory._open.database, self._memory.scope.space, self._id, said)  # noqa: SLF001 - as above

    def archive(self, *, archived: bool = True) -> None:
        """Put the session away, so that lists leave it out, or bring it back. It stays readable and recallable.

        Raises:
            InvalidInput: the chat has no messages yet.

        """
        check_flag(archived, "archived")
        sessions.archive(self._memory._open.database, self._memory.scope.space, self._id, archived=archived)  # noqa: SLF001 - as above

    def __repr__(self) -> str:
        return f"Chat({self._id!r})"


def _reference(hit: Hit) -> str:
    """Name what was recalled, as `Message.shown` does."""
    return hit.id if hit.source == "record" else write_reference(hit.chat, hit.seq)


def _known(opened: Opened, scope: Scope, snapshot: Snapshot) -> KnowledgeBlock:
    """Write what every prompt of a session shows, as of its snapshot: of kinds with a budget, what fits it."""
    agents = tuple(dict.fromkeys((scope.agent, "")))
    headed = [kind for kind in opened.kinds.values() if kind.heading]
    whole = RecordFilter(kinds=tuple(kind.name for kind in headed if not kind.prompt_budget), agents=agents)
    at = from_micros(snapshot.at)
    parts: list[list[Record]] = []
    shown: set[str] = set()
    omitted = Counter[str]()
    for space, version in ((scope.space, snapshot.version), (scope.shared.space, snapshot.shared)):
        asked = version and (not parts or space != scope.space)
        found = records.read(opened.database, space, version, whole) if asked else []
        for kind in headed if asked else ():
            if kind.prompt_budget:
                there = records.outlines(opened.database, space, version, kind.name, agents)
                there = [one for one in there if _is_true(one, snapshot.at)]
                chosen = fitting_records(kind, there)
                by_version = records.by_versions(opened.database, space, [one.version for one in chosen])
                found += [by_version[one.version] for one in chosen if one.version in by_version]
                shown |= {one.id for one in chosen}
                omitted += Counter(target_name(kind, one.target) for one in there)
                omitted -= Counter(target_name(kind, one.target) for one in chosen)
        parts.append([record for record in found if record.valid(at)])
    left = dict(omitted)
    text = knowledge_text(parts[0], parts[1], opened.kinds, scope.agent, left)
    return KnowledgeBlock(text, frozenset(shown), left)


def _is_true(one: RecordOutline, at: int) -> bool:
    return (one.since is None or one.since <= at) and (one.until is None or at < one.until)
