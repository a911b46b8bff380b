"""What stands for the older part of a session: compaction, and the way from every summary back to the words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from holdfast.errors import InvalidInput, ModelFailed, shown
from holdfast.logs import logged
from holdfast.prompt.window import (
    DEFAULTS,
    SUMMARISED,
    Lossless,
    Policy,
    SummaryBuffer,
    at_budget,
    check_policy,
    is_share,
)
from holdfast.safety.guard import Secrets, is_masked, mask_name, masked_hit
from holdfast.store import log, sessions, summaries
from holdfast.types import (
    MAX_COUNT,
    CompactionResult,
    Description,
    Expansion,
    Hit,
    Message,
    Summary,
    Time,
    Why,
    as_time,
    check_count,
    check_flag,
    check_name,
)

if TYPE_CHECKING:
    from holdfast.compaction.driver import Steps, TimeLimit
    from holdfast.compaction.tree import CompactionInput, Mode
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import LLM, Model
    from holdfast.memory import Memory

Item = TypeVar("Item", Message, Summary)
Found = Literal["messages", "summaries", "both"]
_SCOPES: dict[str, tuple[Literal["message", "summary"], ...]] = {
    "messages": ("message",),
    "summaries": ("summary",),
    "both": ("message", "summary"),
}
SNIPPET = 500  # characters of what `search` shows of a hit
Sort = Literal["relevance", "newest", "oldest"]
SORTS: tuple[Sort, ...] = get_args(Sort)


class Digest:
    """Compact a session and read back what is behind its summaries. A part of `Chat`."""

    _memory: Memory
    _id: str

    def crowded(
        self,
        budget: int | None = None,
        threshold: float | None = None,
        *,
        policy: Lossless | SummaryBuffer | None = None,
    ) -> bool:
        """Say whether the session is to be compacted: it takes more than a share of the budget, and something can be done.

        So it is False right after a compaction that could do no more. Costs one small read while there is room.

        Args:
            budget: tokens of the window: of a prompt, without what its system text and what is known take,
                `prompt.tokens["room"]`. None for that of the policy.
            threshold: the share of the budget, above 0; None for that of the policy, 0.75 by default. An incremental
                `compact` goes by that of its policy.
            policy: how the window is made, with its own budget; None for that of `Memory(policy=…)` with this one.

        Raises:
            InvalidInput: a negative budget, a threshold that is no share, or a policy that does not say how to compact.

        """
        policy = self._compacting(policy, budget)
        share = policy.compaction.threshold if threshold is None else threshold
        if not is_share(share):
            raise InvalidInput(
                f"`threshold` is {shown(share)}.", "Pass a fraction above 0 and up to 1, such as 0.75."
            )
        # What reads texts is loaded by those who compact.
        from holdfast.compaction.tree import Compactor

        return Compactor(self._session(), policy.budget, policy.compaction).is_needed(share)

    @logged
    def compact(
        self,
        mode: Mode = "incremental",
        *,
        budget: int | None = None,
        llm: LLM | None = None,
        progress: Callable[[CompactionResult], None] | None = None,
        policy: Lossless | SummaryBuffer | None = None,
    ) -> CompactionResult:
        """Let summaries stand for the older messages. Every word stays in the log, and `expand` gives it back.

        The newest turns are never touched, tool calls never parted from their results. The session may be appended to
        meanwhile, also by others, and nobody waits for this. If two compact it at once, one of them finds that out when
        it stores, stops and says so.

        Args:
            mode: "incremental" goes over the session once if it is crowded, which is what to call after each turn;
                "full" goes on until the session is under its target, nothing more can be done, or a limit of the
                policy is reached (24 calls of a model, 120 seconds); call it again then. An answer that is not there
                when the time is over is not waited for, and `why` of the result names the thread of a function.
            budget: tokens of the window that the session is to fit, as for `crowded`; None for that of the policy.
            llm: what writes the summaries: a function from text to text, synchronous or not, or, with the extra
                `llm`, a model of pydantic-ai or its name. Without one, they are sentences of the messages.
            progress: is called after each summary with the account so far, and before a model is asked as well: then its `why`
                says for which messages. Of an awaited call, on another thread.
            policy: how the window is made, with its own budget; its `compaction` has all limits. None for that of
                `Memory(policy=…)` with this budget.

        Raises:
            InvalidInput: an unknown mode, a negative budget, no model, or a policy that does not say how to compact.
            ModelFailed: the model raised an error. What was stored before it stays; nothing is stored half.
            MissingExtra: the model needs a package that is not installed.

        """
        from holdfast.compaction.driver import TimeLimit, drive

        model = resolved(llm)
        policy = self._compacting(policy, budget)
        limit, meter = TimeLimit(policy.compaction), self._meter()
        steps = self._steps(mode, model, progress, policy, limit)

        def ask(prompt: str) -> str:
            assert model is not None, "nothing is asked without a model"  # noqa: S101 - for the type checker
            return meter.ask(model, asking(prompt), limit.wait(), chat=self._id)

        try:
            done = drive(steps, ask)
        except ModelFailed as error:
            self._tell(error)
            raise
        self._tell(done)
        return done

    def _policy(self, policy: Policy | None, budget: int | None) -> Policy:
        """Give the policy that was passed, or else that of the memory, with this budget."""
        own = self._memory._open.policy  # noqa: SLF001 - a chat is a part of its memory
        return at_budget(own, budget) if policy is None else check_policy(policy)

    def _compacting(self, policy: Policy | None, budget: int | None) -> Lossless | SummaryBuffer:
        """Give the policy that says how to compact, which not each does."""
        policy = self._policy(policy, budget)
        if not isinstance(policy, SUMMARISED):
            raise InvalidInput(
                f"The policy {type(policy).__name__} does not say how to compact.",
                "Use Lossless or SummaryBuffer.",
            )
        return policy

    def _tell(self, ended: CompactionResult | ModelFailed) -> None:
        """Tell of a compaction, or that it failed."""
        # Only for those who compact.
        from holdfast.events import Event

        opened, own = self._memory._open, self._memory.scope  # noqa: SLF001 - a chat is a part of its memory
        scope = replace(own, agent=sessions.agent(opened.database, own.space, self._id, own.agent))
        if isinstance(ended, ModelFailed):
            opened.events.tell(Event("failed", scope, chat=self._id, error=str(ended)))
        elif not ended.noop:
            opened.events.tell(Event("compacted", scope, compaction=ended, chat=self._id))

    def _meter(self) -> Meter:
        return self._memory._open.meter(self._memory.scope)  # noqa: SLF001 - as above

    def _steps(
        self,
        mode: Mode,
        model: Model | None,
        progress: Callable[[CompactionResult], None] | None,
        policy: Lossless | SummaryBuffer,
        limit: TimeLimit | None = None,
        *,
        at_once: int = 1,
    ) -> Steps:
        from holdfast.compaction.tree import Compactor

        if progress is not None and not callable(progress):
            raise InvalidInput(
                f"`progress` is {shown(progress)}.", "Pass a function of one account, or None."
            )
        how = policy.compaction
        compactor = Compactor(
            self._session(), policy.budget, how, model, at_once=at_once, report=progress, limit=limit
        )
        return compactor.run(mode)

    def _session(self) -> CompactionInput:
        from holdfast.compaction.tree import CompactionInput

        opened = self._memory._open  # noqa: SLF001 - a chat is a part of its memory
        return CompactionInput(
            opened.database, self._memory.scope.space, self._id, opened.count_tokens, opened.now
        )

    def describe(self, id: str) -> Description:
        """Describe a summary, of this chat or of another one of the same user, and its place in the tree.

        Raises:
            InvalidInput: there is no such summary in this space.

        """
        database = self._memory._open.database  # noqa: SLF001 - as above
        with database.one_read():
            space, summary = self._summary(id)
            parts = summaries.children(database, space, summary.chat, summary.id) if summary.depth else []
            above = summaries.ancestors(database, space, summary)
        return Description(summary, tuple(above), tuple(part.id for part in parts))

    @logged
    def expand(self, id: str, token_cap: int = 4_000, *, cursor: str | None = None) -> Expansion:
        """Read what stands behind a summary: the original messages of a leaf, the children of a condensed one.

        Args:
            id: of a summary of this chat, or of another one of the same user.
            token_cap: tokens at most; but always one item at least, so that walking on reaches everything.
            cursor: where to go on, from the expansion before.

        Raises:
            InvalidInput: there is no such summary in this space, or the cursor is none of it.

        """
        cap = check_count(token_cap, "token_cap")
        database = self._memory._open.database  # noqa: SLF001 - as above
        with database.one_read():
            space, summary = self._summary(id)
            after = _place(cursor, summary)
            if summary.depth:
                parts = summaries.children(database, space, summary.chat, summary.id)
                children = _within([part for part in parts if part.first > after], cap)
                last = children[-1].last if children else summary.last
                return _expansion(summary, (), children, last)
            messages = _within(log.forward(database, space, summary.chat, after, summary.last), cap)
            last = messages[-1].seq if messages else summary.last
            return _expansion(summary, messages, (), last)

    def _summary(self, identity: str) -> tuple[str, Summary]:
        check_name(identity, "The id of a summary")
        opened, scope = self._memory._open, self._memory.scope  # noqa: SLF001 - as above
        found = summaries.find(opened.database, scope, self._id, identity)
        if found is None:
            raise InvalidInput(
                f"There is no summary {identity!r} here.",
                "Use the id of one in `window().summaries`, or of a hit whose source is 'summary'.",
            )
        return found

    def tree(self) -> list[Summary]:
        """List all summaries of the session, leaves first, each level in the order of the messages."""
        return summaries.read_all(self._memory._open.database, self._memory.scope.space, self._id)  # noqa: SLF001 - as above

    @logged
    def search(
        self,
        query: str,
        scope: Found = "both",
        limit: int = 20,
        *,
        regex: bool = False,
        since: Time | None = None,
        before: Time | None = None,
        sort: Sort | None = None,
        secrets: Secrets = "mask",
    ) -> list[Hit]:
        r"""Find messages and summaries of this session, each with a snippet around what matched.

        As `Memory.recall`, but within this chat, and the texts of hits are cut to 500 characters. A query without
        letters and digits finds nothing, but as a regular expression, such as `r"ORA-\d{5}"`: that is looked for in the
        words as they are shown, masked or not, in time that is linear in the length of the chat, whatever it nests.

        Args:
            query: a question or some words, in any language; all characters of it are plain text, but with `regex`.
            scope: "messages", "summaries" or "both".
            limit: at most so many hits.
            regex: the query is a regular expression, as for `re`, with `^` and `$` at each line, `(?i)` at its start for
                any case, and no lookarounds or backreferences.
            since: only what was said at this time or later; of summaries the latest message counts.
            before: only what was said before this time.
            sort: "relevance", best first, which a regular expression has not; "newest" or "oldest" first, in the order of
                the chat. None for "relevance", and for "newest" with `regex`. Of words the best hits are put in order.
            secrets: "mask" or "show", as in `Memory.recall`.

        Raises:
            InvalidInput: an unknown scope or sort order, a query that is not text, a negative limit, what is no time, or no
                such regular expression.

        """
        # numpy is loaded by the first search.
        from holdfast.search.query import has_words
        from holdfast.text.snippet import snippet

        if scope not in tuple(_SCOPES):
            raise InvalidInput(f"{shown(scope)} is no scope.", f"Use one of {', '.join(_SCOPES)}.")
        if not isinstance(query, str):
            raise InvalidInput(f"A query must be text, not {type(query).__name__}.", "Pass a string.")
        orders = SORTS[1:] if check_flag(regex, "regex") else SORTS
        if sort not in (None, *orders):
            raise InvalidInput(f"`sort` is {shown(sort)}.", f"Use one of {', '.join(orders)}.")
        check_count(limit, "limit")
        masked = is_masked(secrets)
        since, before = as_time(since, "since"), as_time(before, "before")
        if regex:
            return self._matching(query, scope, limit, since, before, oldest=sort == "oldest", masked=masked)
        if not has_words(query):
            return []
        every = self._memory.scoped(agent="")  # the chat is named, whoever opened it
        near = every.recall(
            query,
            sources=_SCOPES[scope],
            chat=self._id,
            since=since,
            until=before,
            limit=5 * limit,
            secrets=secrets,
        )
        hits = [hit for hit in near if hit.why.words][:limit]  # not those that only stand beside a match
        if sort in ("newest", "oldest"):
            hits.sort(key=_position, reverse=sort == "newest")
        return [replace(hit, text=snippet(hit.text, hit.why.words, SNIPPET)) for hit in hits]

    def _matching(
        self,
        query: str,
        scope: Found,
        limit: int,
        since: datetime | None,
        before: datetime | None,
        *,
        oldest: bool,
        masked: bool,
    ) -> list[Hit]:
        """Find what a regular expression stands in, reading the session until there is enough."""
        # numpy is loaded by the first search.
        from holdfast.search.message_source import message_hit
        from holdfast.search.summary_source import summary_hit

        # Only for those who search with one.
        from holdfast.text.pattern import Pattern
        from holdfast.text.snippet import around

        pattern, why = Pattern(query), Why({"pattern": 1.0})
        database, space = self._memory._open.database, self._memory.scope.space  # noqa: SLF001 - as above

        def matches(hits: Iterable[Hit]) -> Iterator[Hit]:
            for hit in hits:
                if not hit.text or (since and hit.at < since) or (before and hit.at >= before):
                    continue
                shown_hit = masked_hit(hit) if masked else hit
                if (end := pattern.find(shown_hit.text)) is not None:
                    yield replace(shown_hit, text=around(shown_hit.text, end - SNIPPET // 2, SNIPPET))

        with database.one_read():
            found: list[Hit] = []
            if scope != "messages":
                found += matches(summary_hit(1.0, why, one) for one in self.tree())
            if scope != "summaries":
                said = (
                    log.forward(database, space, self._id, 0, MAX_COUNT)
                    if oldest
                    else log.newest_first(database, space, self._id)
                )
                found += islice(matches(message_hit(1.0, why, self._id, one) for one in said), limit)
        return sorted(found, key=_position, reverse=not oldest)[:limit]

    def review(
        self,
        since: Time | None = None,
        *,
        after: int | None = None,
        limit: int = 200,
        budget: int | None = None,
    ) -> str:
        """Write the session as text for a reviewer: what was said since a time, with earlier summaries as background.

        Everything in it is framed as data. "" for an unknown chat, and where nothing was said since. Where messages
        between the summaries and those shown are left out, a line says how many.

        Args:
            since: the messages after this time; None for those of the whole session.
            after: only messages with a larger `seq`.
            limit: the newest so many of them.
            budget: of these, the newest that take about so many tokens as they are written here, and one at least; None
                for all.

        Raises:
            InvalidInput: `since` is no time, or a negative number.

        """
        from holdfast.prompt.transcript import Extent, review

        opened, space = self._memory._open, self._memory.scope.space  # noqa: SLF001 - as above
        extent = Extent(
            as_time(since, "since"),
            0 if after is None else check_count(after, "after"),
            check_count(limit, "limit"),
            None if budget is None else check_count(budget, "budget"),
        )
        with opened.database.one_read():
            frontier = summaries.frontier(opened.database, space, self._id)
            newest_first = log.backward(opened.database, space, self._id)
            return review(frontier, newest_first, extent, opened.count_tokens).text


def _position(hit: Hit) -> int:
    return max(hit.seq, hit.last)


def asking(prompt: str) -> LLMRequest:
    """Ask for a summary, as the meter wants it."""
    # Only for those who have a model.
    from holdfast.llm.llm_request import LLMRequest

    return LLMRequest("compact", prompt, None, "", answer_tokens=DEFAULTS.leaf_target)


def resolved(llm: LLM | Model | None) -> Model | None:
    """Give the model that was passed, ready to be asked; None for none."""
    if llm is None:
        return None
    # Only for those who have a model.
    from holdfast.llm.adapters import resolve

    return resolve(llm)


def _place(cursor: str | None, summary: Summary) -> int:
    """Read a cursor: the seq of the last message that was given."""
    if cursor is None:
        return summary.first - 1
    check_name(cursor, "The cursor")
    if (
        cursor.isascii()
        and cursor.isdigit()
        and len(cursor) < 20
        and summary.first <= int(cursor) <= summary.last
    ):
        return int(cursor)
    raise InvalidInput(
        f"{mask_name(cursor)[:40]!r} is no cursor of summary {summary.id}.",
        "Pass the cursor of its last expansion.",
    )


def _within(items: Iterable[Item], cap: int) -> tuple[Item, ...]:
    """Take items while they fit together, and the first in any case."""
    taken: list[Item] = []
    tokens = 0
    for item in items:
        tokens += item.tokens
        if taken and tokens > cap:
            break
        taken.append(item)
    return tuple(taken)


def _expansion(
    summary: Summary, messages: tuple[Message, ...], children: tuple[Summary, ...], last: int
) -> Expansion:
    more = last < summary.last
    return Expansion(summary, messages, children, more, str(last) if more else None)
