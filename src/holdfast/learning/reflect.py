"""Reflection: merge new messages of chats into the profile of the user, and add observations.

It may rewrite the profile and add observations, each with the words that it rests on. Everything else that a
model proposes, constraints and souls above all, is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape

from holdfast.compaction.summarize import cleaned
from holdfast.errors import Conflict
from holdfast.learning import echo_match
from holdfast.learning.echo_match import EchoFilter
from holdfast.learning.external_sources import brought_in
from holdfast.learning.extraction_prompt import FIELDS, KINDS, asks_for_quotes, review_lines
from holdfast.learning.grounding import Observation, grounds, quotes_of_user, redacted, unescaped
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.learning.observations import collect
from holdfast.llm.json_answers import has, listed, parse, picked, table, text_of
from holdfast.llm.llm_request import LLMRequest, Unreadable, exactly
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.prompt.transcript import Extent, Review, review
from holdfast.records.draft import RecordDraft
from holdfast.store import records, summaries, watermarks
from holdfast.store.database import Connection, Database
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.store.watermarks import PendingChat
from holdfast.text.shorten import shorten_line
from holdfast.types import Message, Record

KIND = "reflect"
# Quotes for a profile, and observations of one chat, as far as there are so many characters for each after
# the first.
MOST, _PER = 5, 50
_PROFILE = "profile"
_QUOTES = "profile_quotes"
_KEPT = 0.5  # the share of its characters that a profile keeps at least
_ANSWER = 1_500  # tokens, about, beside those of the profile
_LONGEST_REASON = 200  # characters
_NOTHING = re.compile(r"\bnothing (?:new )?to save\b", re.IGNORECASE)
_NO_PROFILE = frozenset({"null", "none", "unchanged", "nothing to save"})
_OBSERVATION = exactly({"kind": {"type": "string", "enum": list(KINDS)}, **FIELDS})
_PROPERTIES: Mapping[str, object] = {
    _PROFILE: {"type": ["string", "null"], "description": "The full new text, or null."},
    _QUOTES: {
        "type": "array",
        "items": {"type": "string"},
        "description": "The words of the user that its changes rest on, copied exactly.",
    },
    "observations": {"type": "array", "items": _OBSERVATION},
    "why": {"type": "string"},
}
_SCHEMA = exactly(_PROPERTIES)


def due(context: JobContext) -> list[str]:
    """Return the agents that have chats with news, the one whose chat waits longest first; "" is no agent."""
    return list(dict.fromkeys(news.agent for news in _chats(context, context.scope.agent or None)))


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan a reflection: a unit for each chat of the agent with news, the one that waits longest first."""
    prompt = context.prompt(KIND)
    for news in _chats(context, context.scope.agent)[: context.settings.batch]:
        messages = _new_messages(context, news)
        shown = _review(context, news, messages)
        if shown.text:
            profile = current_profile(context, context.database)
            reflection = _Reflection(context, news, messages, shown, profile, prompt)
            yield WorkUnit(reflection.request(), reflection.learn, news.chat)
        else:
            yield context.pass_over(news.chat, _done(news), note=f"chat {news.chat}: nothing to read")


def _chats(context: JobContext, agent: str | None) -> list[PendingChat]:
    return watermarks.pending_chats(
        context.database,
        context.space,
        KIND,
        agent=agent,
        archived=False,
        most=context.settings.attempts,
        now=context.now(),
    )


# What is shown


def _new_messages(context: JobContext, news: PendingChat) -> list[Message]:
    """Return the new messages of a chat, without what the memory or external sources brought in.

    A profile stands in every prompt: the text of a web page must not get into it.
    """
    read = context.read_messages(news.chat, news.seen, news.length, context.settings.messages)
    left_out = echo_match.recalled_seqs(read) | brought_in(read, context.settings.untrusted)
    return [own for one in read if one.seq not in left_out and (own := _without_injected(one))]


def _without_injected(message: Message) -> Message | None:
    content = echo_match.without_injected(message.content)
    if content == message.content:
        return message
    return replace(message, content=content) if content.strip() or message.calls else None


def _review(context: JobContext, news: PendingChat, messages: Sequence[Message]) -> Review:
    frontier = summaries.frontier(context.database, context.space, news.chat)
    extent = Extent(after=news.seen, limit=context.settings.messages, budget=context.settings.tokens)
    return review(frontier, reversed(messages), extent, context.count_tokens, numbered=True)


def current_profile(context: JobContext, source: Database | Connection) -> Record | None:
    """Return the profile that is rewritten: the agent's own, or the one for all agents.

    Not the one that the tenant shares: no erasure in the space of a user could find a copy of it.
    """
    agent = context.scope.agent
    wanted = RecordFilter(kinds=(_PROFILE,), agents=tuple(dict.fromkeys((agent, ""))))
    found = records.read(source, context.space, NOW.version, wanted)
    return min(found, key=lambda one: one.agent != agent, default=None)


# What is proposed


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A new profile, None for none, with the user's quotes for it, observations, and what was refused."""

    profile: str | None = None
    quotes: Sequence[str] = ()
    observations: Sequence[Observation] = ()
    why: str = ""
    dropped: Counter[str] = field(default_factory=Counter)


def _read(answer: str, messages: Sequence[Message], shown: Review, kinds: Collection[str]) -> _Proposal:
    """Return what an answer proposes: one observation, and one more for each 50 characters, up to five.

    Raises:
        Unreadable: it is neither what was asked for, nor that there is nothing to save.

    """
    if "{" not in answer and _NOTHING.search(answer):
        return _Proposal()
    given = table(parse(answer), "the answer")
    dropped = _refused(given, kinds)
    if not (dropped or any(has(given, name) for name in (_PROFILE, "observations", *KINDS))):
        raise Unreadable("it has neither `profile` nor `observations`.")
    dropped["not asked for"] = sum(
        not any(has({key: None}, name) for name in (*_PROPERTIES, *kinds)) for key in given
    )

    def flaw_of(kind: str, text: str) -> str:
        if kind not in KINDS:
            return f"{kind} not allowed" if kind in kinds else "unknown kind"
        return "blank" if _NOTHING.fullmatch(text.rstrip(".!")) else ""

    # Quotes must stand in messages: summaries are nobody's words.
    span = first, last = shown.messages
    lines = review_lines(one for one in messages if first <= one.seq <= last)
    most = min(MOST, 1 + len(shown.text) // _PER)
    too_many = f"more than {most} observation{'s' if most > 1 else ''}"
    found, flawed = collect(_items(given), lines, span, most, too_many, flaw_of)
    quotes = quotes_of_user(listed(picked(given, _QUOTES))[:MOST], lines)
    return _Proposal(_new_profile(given), quotes, found, _reason(given), dropped + flawed)


def _refused(given: Mapping[str, object], kinds: Collection[str]) -> Counter[str]:
    """Return how many items there are of kinds that reflection does not write."""
    refused = (kind for kind in kinds if kind not in (_PROFILE, *KINDS))
    return +Counter({f"{kind} not allowed": len(listed(picked(given, kind))) for kind in refused})


def _items(given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the observations with their kinds, also those in a list of their kind, by default "finding"."""
    for item in listed(picked(given, "observations")):
        kind = picked(item, "kind") if isinstance(item, Mapping) else None
        yield str(kind or "finding").strip().casefold().removesuffix("s"), item
    for name in KINDS:
        yield from ((name, item) for item in listed(picked(given, name)))


def _new_profile(given: Mapping[str, object]) -> str | None:
    value = picked(given, _PROFILE)
    if value is None:
        return None
    text = unescaped(text_of(value, _PROFILE)).strip()
    is_empty = text.rstrip(".").casefold() in _NO_PROFILE or (text and not any(map(str.isalpha, text)))
    return None if is_empty else text


def _reason(given: Mapping[str, object]) -> str:
    value = picked(given, "why")
    # A harmful reason does not hold the profile back: what may do harm is left out.
    return shorten_line(cleaned(unescaped(value)), _LONGEST_REASON) if isinstance(value, str) else ""


# What is stored


@dataclass(frozen=True, slots=True)
class _Reflection:
    """The reflection on the new messages of a chat, shown as a review, and on the profile."""

    context: JobContext
    news: PendingChat
    messages: Sequence[Message]
    review: Review
    profile: Record | None
    prompt: PromptTemplate

    def request(self) -> LLMRequest:
        """Return the request to the model."""
        profile = self.profile
        text = profile.text if profile else ""
        filled = self.prompt.fill(
            version=str(profile.version if profile else 0),
            profile=escape(text, quote=False) or "(none yet)",
            review=self.review.text,
        )
        answer_tokens = self.context.count_tokens(text) + _ANSWER
        return LLMRequest(KIND, filled, _SCHEMA, self.prompt.label, answer_tokens)

    def learn(self, answer: str | None) -> UnitResult:
        """Store what a model proposes and reflection may write, unless the profile was changed meanwhile."""
        context, shown, chat = self.context, self.profile, self.news.chat
        proposal = _read(answer or "", self.messages, self.review, context.kinds)
        dropped, text = Counter(proposal.dropped), proposal.profile
        fresh = self._without_echoes(proposal.observations)
        dropped["recalled"] += len(proposal.observations) - len(fresh)
        offered = list(map(self._observed, fresh))
        if text is not None:
            meta: dict[str, object] = {"why": proposal.why} if proposal.why else {}
            is_bare = asks_for_quotes(self.prompt, _QUOTES) and not proposal.quotes
            draft = partial(self._draft, messages=self.review.messages, is_untrusted=is_bare)
            profiles, lost = rewritten(context, shown, text, proposal.quotes, meta, draft)
            offered += profiles
            dropped += lost
        drafts, unfit = context.storable(offered)
        dropped += unfit
        rewrites = any(draft.kind == _PROFILE for draft in drafts)
        check = unchanged(context, shown) if rewrites else None
        written = context.commit(drafts, _done(self.news), check=check)
        return UnitResult(written, +dropped, f"chat {chat}: {_note(written, +dropped)}")

    def _without_echoes(self, observations: Sequence[Observation]) -> list[Observation]:
        """Return the observations without those that only the agent repeats, from its memory."""
        if not observations:
            return []
        first, last = self.review.messages
        read = self.context.read_messages(self.news.chat, first - 1, last)
        echo = EchoFilter(self.context, read)

        def is_said(one: Observation) -> bool:
            start, end = one.messages or (first, last)
            own = [said.content for said in read if said.role == "user" and start <= said.seq <= end]
            return echo_match.restates(one.text, own)

        return [one for one in observations if is_said(one) or not echo.repeats(one.text, one.messages, "")]

    def _observed(self, one: Observation) -> RecordDraft:
        """Return the draft of an observation, untrusted if it rests on no words."""
        is_bare = asks_for_quotes(self.prompt) and not one.quote
        return self._draft(one.kind, one.text, messages=one.messages, meta=grounds(one), is_untrusted=is_bare)

    @property
    def _draft(self) -> Callable[..., RecordDraft]:
        chat, label = self.news.chat, self.prompt.label
        return partial(self.context.draft, learned_by=label, source=f"session:{chat}", chat=chat)


def rewritten(
    context: JobContext,
    before: Record | None,
    text: str,
    quotes: Sequence[str],
    meta: Mapping[str, object],
    draft: Callable[..., RecordDraft],
) -> tuple[list[RecordDraft], Counter[str]]:
    """Return the draft of a profile that is news, and whether it would lose too much of the one `before`."""
    if before is not None and len(text) < _KEPT * len(before.text):
        return [], Counter({"profile would lose too much": 1})
    if not text or (before is not None and text.split() == before.text.split()):
        return [], Counter()
    told = dict(meta)
    if quotes:
        told["quotes"] = [redacted(quote) for quote in quotes]
    if before is not None and before.agent != context.scope.agent:
        # It becomes another record, which an erasure has to find.
        told["of"] = [before.id]
    return [draft(_PROFILE, text, meta=told)], Counter()


def unchanged(context: JobContext, shown: Record | None) -> Callable[[Writing], None]:
    """Return what raises Conflict unless the profile is still the one that was read."""

    def check(changes: Writing) -> None:
        current = current_profile(context, changes.tx)
        if (current and (current.id, current.version)) != (shown and (shown.id, shown.version)):
            raise Conflict(
                "The profile was changed while a model read the former one.",
                "Try again, so that the session is merged into the current one.",
            )

    return check


def _done(news: PendingChat) -> Watermark:
    return Watermark(news.chat, KIND, news.length)


def _note(written: Sequence[Record], dropped: Mapping[str, int]) -> str:
    kept = [record for record in written if record.trust != "quarantined"]
    rewritten = any(record.kind == _PROFILE for record in kept)
    observations = sum(record.kind != _PROFILE for record in kept)
    held = len(written) - len(kept)
    parts = (
        "profile rewritten" if rewritten else "",
        f"{observations} observation{'s' if observations > 1 else ''}" if observations else "",
        f"{held} in quarantine" if held else "",
    )
    return ", ".join(filter(None, parts)) or ("nothing saved" if dropped else "nothing to save")
