"""Windows and prompts of one chat, made of what is read as of one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from holdfast.errors import BudgetExceeded, InvalidInput
from holdfast.events import logged
from holdfast.messages.media import has_media
from holdfast.messages.message_tokens import message_tokens
from holdfast.prompt.build import Format, Images, PromptOptions, build, conversation
from holdfast.prompt.knowledge_block import known_at
from holdfast.prompt.oversize import Placeholders
from holdfast.prompt.recall_block import hit_limit, in_zone
from holdfast.prompt.selector import expected_messages, selector
from holdfast.prompt.window import (
    SUMMARISED,
    CheckedPolicy,
    Chosen,
    Policy,
    at_budget,
    check_policy,
    name_of,
    with_tail,
    within,
)
from holdfast.records.reader import count_hits
from holdfast.safety.guard import Secrets, is_masked
from holdfast.search.display import Display
from holdfast.store import grants, log, prompt_receipts, sessions, snapshots, summaries
from holdfast.store.checksums import digest
from holdfast.store.message_rows import from_micros, to_micros
from holdfast.store.snapshots import Snapshot
from holdfast.types import MAX_COUNT, Prompt, Receipt, check_count
from holdfast.types.handles import Handle
from holdfast.types.messages import changed
from holdfast.types.references import noted, write_reference

if TYPE_CHECKING:
    from holdfast.kinds import Kind
    from holdfast.prompt.prompt_cache import PromptCache
    from holdfast.search.search import Search, SearchReader
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens
    from holdfast.types import ChatStats, Hit, Message, Scope, Summary, Window


# Hits beside those wanted, for questions that give way.
_GIVE_WAY = 3


class PromptMaker(Handle):
    """A maker of prompts: a chat, or a run of it."""

    def _assemble(self, budget: int | None, query: str | None, options: PromptOptions) -> Prompt:
        raise NotImplementedError

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
        """Assemble a prompt in one budget: system text, what is known, the window, and what recall finds.

        The first prompt of a chat freezes what is known: constraints, soul, profile and facts are from then
        on the same to the byte, and what others learn meanwhile waits until the chat itself remembers
        something or `refresh` is called. Then come the notes of the run, if there is one, and the window.
        What was recalled is a message before the newest user message, framed as data, with dates and
        speakers; what the window shows already is not repeated. So the beginning is the same from turn to
        turn, for the caches of providers; `tokens["unchanged"]` counts how much that is. See
        `docs/budgets.md`.

        Args:
            budget: tokens at most; None for those of the policy. What is known is shown whole.
            query: what to recall, usually the user's newest message; None recalls nothing.
            system: your own instructions, which stand first; behind them stands the newest system message
                that the window does not reach, if the chat begins with one. In them `{topic}` is filled from
                the scratchpad of the chat, `{user:topic}` from that of the user, `{app:topic}` from that
                which all users of the tenant share, and `{temp:topic}` with what is kept in memory only;
                `{topic?}` may have no value, and `{{topic}}` stands for itself. A value that looks like an
                order to the model is withheld.
            limit: at most so many recalled messages and records; None for as many as fit.
            policy: how to choose the window, within what is left of the budget; None for that of
                `Memory(policy=…)`.
            images: "keep" sends images, files and sound as they came in, in the form that the `format` takes;
                "placeholder" shows a line such as `[image: cat.png]` for each, for models that read text
                only.
            secrets: "mask" masks credentials in what was recalled, in summaries and in placeholders; "show"
                shows those of the first two. The messages of this chat are always shown as they were said.
            format: the form of `messages`: "openai", of its chat completions, or "anthropic", of its Messages
                API.
            strict: raise BudgetExceeded where what is always shown takes more than the budget, in place of
                noting it in `tokens["over"]`.
            expand: whether the model has the tool `expand` (see `Memory.tools`): summaries and placeholders
                then name it.

        Raises:
            BudgetExceeded: what is always shown takes more than the budget, and `strict` is set.
            InvalidInput: a negative budget or limit, a query or a system that is not text, or an unknown
                option.

        """
        options = PromptOptions(system, limit, policy, images, secrets, format, strict, expand)
        return self._assemble(budget, query, options)


@dataclass(frozen=True, slots=True)
class ChatReader:
    """Make the windows and prompts of one chat. `policy` is that of the memory."""

    database: Database
    scope: Scope
    chat: str
    kinds: Mapping[str, Kind]
    clock: Callable[[], datetime]
    count_tokens: CountTokens
    policy: CheckedPolicy
    search: Callable[[], Search]
    cache: PromptCache

    def window(self, budget: int | None, tail: int | None, policy: Policy | None) -> Window:
        """Return what a model will see of the chat; see `Chat.window`."""
        if tail is not None and policy is not None:
            raise InvalidInput("Both a tail and a policy are given.", "Say in the policy what is kept.")
        if budget is not None:
            check_count(budget, "budget")
        chosen = with_tail(self.policy_for(policy, budget), tail)
        with self.database.one_read():
            stats = sessions.stats(self.database, self.scope.space, self.chat)
            newest_first = self._newest_first(expected_messages(chosen, stats))
            shorten = Placeholders(self.chat, self.count_tokens)
            select = selector(chosen, newest_first, stats, self._frontier(chosen, stats), shorten)
            return select(chosen.budget)

    def policy_for(self, policy: Policy | None, budget: int | None) -> CheckedPolicy:
        """Return the policy that was passed, or else that of the memory, at this budget."""
        return at_budget(self.policy if policy is None else check_policy(policy), budget)

    def prompt(
        self, budget: int | None, query: str | None, options: PromptOptions, run_notes: Callable[[], str]
    ) -> Prompt:
        """Assemble a prompt as of one moment; `run_notes` writes the notes of the run, "" outside of any."""
        given = None if budget is None else check_count(budget, "budget")
        policy = self.policy_for(options.policy, given if options.policy is None else None)
        budget = min(policy.budget, MAX_COUNT) if given is None else given
        if query is not None and not isinstance(query, str):
            raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
        policy = within(policy, budget)
        # What writes, asks a model or takes long comes before the one read that the prompt is made in. Who
        # may only read the chat of a team stores no answer there either: nothing is noted for it.
        writes = not self.database.read_only and grants.may(self.database, self.scope, "write")
        was_taken = (self.scope.space, self.chat) in self.cache.taken
        if writes and not was_taken:
            snapshots.freeze(self.database, self.scope, self.chat, self._now())
        display = Display(self.database, self.scope)
        with self._one_read(query, options.limit) as read:
            stats = sessions.stats(self.database, self.scope.space, self.chat)
            # A chat that does not exist has no snapshot: it is shown what is known now.
            taken = snapshots.read(self.database, self.scope, self.chat)
            self.cache.take(self.scope.space, self.chat, taken)
            snapshot = taken or snapshots.now(self.database, self.scope, self._now())
            make = partial(known_at, self.database, self.scope, self.kinds, snapshot)
            frozen = self.cache.frozen((self.scope, snapshot), make) if taken else make()
            always = "\n\n".join(part for part in (frozen.text, run_notes()) if part)
            text = f"{options.system}{always}"
            room = budget - (self.count_tokens(text) if text else 0)
            hits = self._recall(read, query, snapshot, frozen.records, room, options, display)
            prompt = self._build(policy, budget, hits, stats, always, options)
        if was_taken and not taken and stats.messages:
            # Another process has erased the chat, and begun it anew.
            return self.prompt(given, query, options, run_notes)
        if writes:
            display.keep()
            self._note(self._receipt(prompt, snapshot, policy, options.system, query), snapshot, stats)
            count_hits(self.database, self.scope, self.kinds, self._now(), prompt.hits)
        return replace(prompt, omitted=frozen.omitted, degraded=read.degraded if read else None)

    def _build(
        self,
        policy: CheckedPolicy,
        budget: int,
        hits: list[Hit],
        stats: ChatStats,
        always: str,
        options: PromptOptions,
    ) -> Prompt:
        """Build the prompt, reading messages as far as they fit."""
        images = options.images == "keep"
        expected = expected_messages(within(policy, conversation(budget)) if hits else policy, stats)
        newest_first = self._newest_first(expected, images=images)
        shorten = Placeholders(self.chat, self.count_tokens, images, options.expand)
        prompt = build(
            selector(policy, newest_first, stats, self._frontier(policy, stats), shorten),
            hits,
            chat=self.chat,
            budget=budget,
            count=self.count_tokens,
            options=options,
            known=always,
            space=self.scope.reference(self.scope.space),
            named=self.scope.is_layered,
            instructions=partial(log.newest_instructions, self.database, self.scope.space, self.chat),
            unchanged=lambda fingerprint: self.cache.unchanged((self.scope, self.chat), fingerprint),
        )
        self.cache.see(self.scope.space, self.chat, prompt.window)
        if options.strict and prompt.tokens["over"]:
            raise BudgetExceeded(
                f"The prompt takes {prompt.tokens['total']:,} tokens at least; the budget is {budget:,}.",
                "Raise the budget, shorten `system`, or choose a policy that keeps less.",
            )
        return prompt

    def _receipt(
        self, prompt: Prompt, snapshot: Snapshot, policy: CheckedPolicy, system: str, query: str | None
    ) -> Receipt:
        return Receipt(
            seq=0,
            at=from_micros(self._now()),
            version=snapshot.version,
            shared=snapshot.shared,
            budget=prompt.tokens["budget"],
            policy=name_of(policy),
            parameters={"budget": policy.budget} if isinstance(policy, Chosen) else asdict(policy),
            system=digest(system),
            query=digest(query or ""),
            summaries=tuple(summary.id for summary in prompt.window.summaries),
            # Named as in `Message.shown`.
            hits=tuple(
                hit.id
                if hit.source == "record"
                else noted(write_reference(hit.chat, hit.seq), self.scope.named(hit.space).space, self.scope)
                for hit in prompt.hits
            ),
        )

    def _note(self, receipt: Receipt, snapshot: Snapshot, stats: ChatStats) -> None:
        """Note what a prompt was made of, where whoever stores its answer finds it."""
        space, cache, exists = self.scope.space, self.cache, bool(stats.messages)
        if not cache.worker:
            return
        cache.show(space, self.chat, receipt.hits)
        if exists:
            prompt_receipts.note(self.database, space, self.chat, cache.worker, receipt, snapshot.epoch)
        cache.hold(space, self.chat, None if exists else receipt)

    def _newest_first(self, expected: int, *, images: bool = True) -> Iterator[Message]:
        """Yield the messages newest first, with the tokens that they take as they are shown."""
        for message in log.backward(self.database, self.scope.space, self.chat, expected):
            if not images and has_media(message.raw):
                tokens = message_tokens(message, self.count_tokens, images=False)
                yield changed(message, tokens=tokens)
            else:
                yield message

    def _frontier(self, policy: CheckedPolicy, stats: ChatStats) -> list[Summary]:
        """Read the summaries that stand for the older part, if the policy shows any."""
        if not stats.summarised or not isinstance(policy, SUMMARISED):
            return []
        return summaries.frontier(self.database, self.scope.space, self.chat)

    def _one_read(self, query: str | None, limit: int | None) -> AbstractContextManager[SearchReader | None]:
        """Return the one read that a prompt is made in; with nothing to recall, of the database only.

        An embedder is asked now, before the read begins. A query such as a lone emoji has nothing to search
        for, and that is no error here.
        """
        if query is not None and limit != 0:
            # numpy is loaded by the first recall.
            from holdfast.search.filters import Filters
            from holdfast.search.query import has_words

            if has_words(query):
                search = self.search()
                return search.one_read(self.scope, Filters(), search.meaning(self.scope, query))
        return self.database.one_read()

    def _recall(
        self,
        read: SearchReader | None,
        query: str | None,
        snapshot: Snapshot,
        shown_already: frozenset[str],
        room: int,
        options: PromptOptions,
        display: Display,
    ) -> list[Hit]:
        """Recall for a prompt what is not shown anyway, records as of the snapshot.

        The query itself is not recalled, once it has been appended. Summaries are not wanted: the turns
        behind them are found themselves.
        """
        if read is None or query is None:
            return []
        from holdfast.search.filters import check
        from holdfast.search.query import parse
        from holdfast.text.analyze import hash_same
        from holdfast.text.prose import split

        limit = hit_limit(options.limit, room)
        wanted = check(
            sources=("message", "record"),
            limit=limit + _GIVE_WAY if limit else 0,
            valid_at=from_micros(snapshot.at),
            as_of=snapshot.moments(self.scope),
        )
        shown_whole = {kind.name for kind in self.kinds.values() if kind.heading and not kind.prompt_budget}
        # What is shown is in the order of time, and what is newest is in the window.
        echo, now = hash_same(*split("user", query)), self.clock()
        wanted = replace(wanted, later=None, echo=echo, answers=True)
        hits = read.find(parse(query, now), wanted)
        read.release()
        left = [hit for hit in hits if hit.kind not in shown_whole and hit.id not in shown_already]
        left = [in_zone(hit, now.tzinfo) for hit in left[:limit]]
        return display.mask(left) if is_masked(options.secrets) else left

    def _now(self) -> int:
        return to_micros(self.clock())
