"""Reflection: what is new in the sessions of an agent, merged into the profile of its user, and what else they teach.

It may rewrite the profile and add observations, each with the words that it rests on. Whatever else a model offers, constraints and souls above all, is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.compaction.summarize import cleaned
from holdfast.errors import Conflict
from holdfast.learning import echo_match, extraction_prompt
from holdfast.learning.echo_filter import Told
from holdfast.learning.external_sources import brought_in
from holdfast.learning.job_context import Mark, Outcome, Setting, Unit
from holdfast.llm.json_answers import has, listed, parse, picked, table, text_of
from holdfast.llm.llm_request import Question, Unreadable, exactly
from holdfast.llm.prompt_files import load
from holdfast.prompt.transcript import Extent, Review, review
from holdfast.records.draft import UNTRUSTED, RecordDraft
from holdfast.store import log, records, summaries, watermarks
from holdfast.store.records import NOW, Wanted
from holdfast.text.sentences import one_line
from holdfast.text.shorten import shorten_line
from holdfast.types import Message, Record

if TYPE_CHECKING:
    from holdfast.learning.extraction_prompt import Line, Observation, ObservationKind
    from holdfast.llm.prompt_files import Prompt
    from holdfast.store.database import Connection, Database
    from holdfast.store.records import Writing
    from holdfast.store.watermarks import News
    from holdfast.types import Job, Range

KIND = "reflect"
MOST = 5  # quotes for a profile, and observations of one session …
_PER = 50  # … as far as there are so many characters for each after the first
_PROFILE = "profile"
_QUOTES = "profile_quotes"
_KEPT = 0.5  # the share of its characters that a profile keeps at least
_ANSWER = 1_500  # tokens, about, beside those of the profile
_LONGEST_REASON = 200  # characters
_NOTHING = re.compile(r"\bnothing (?:new )?to save\b", re.IGNORECASE)
_NO_PROFILE = frozenset({"null", "none", "unchanged", "nothing to save"})
_OBSERVATION = exactly(
    {"kind": {"type": "string", "enum": list(extraction_prompt.KINDS)}, **extraction_prompt.FIELDS}
)
_ASKED_FOR: Mapping[str, object] = {
    _PROFILE: {"type": ["string", "null"], "description": "The full new text, or null."},
    _QUOTES: {
        "type": "array",
        "items": {"type": "string"},
        "description": "The words of the user that its changes rest on, copied exactly.",
    },
    "observations": {"type": "array", "items": _OBSERVATION},
    "why": {"type": "string"},
}
_SCHEMA = exactly(_ASKED_FOR)


def due(setting: Setting) -> list[str]:
    """List the agents that have sessions with news, the one whose session waits longest first; "" is no agent."""
    agent = setting.scope.agent or None
    most = setting.learning.attempts
    found = watermarks.news(
        setting.database, setting.space, KIND, agent=agent, archived=False, most=most, now=setting.now()
    )
    return list(dict.fromkeys(news.agent for news in found))


def plan(
    setting: Setting,
    jobs: Sequence[Job],  # noqa: ARG001 - every plan is called like this
    payload: Mapping[str, object],  # noqa: ARG001 - as above
) -> Iterator[Unit]:
    """Plan a reflection: a unit for each session of the agent with news, the one that waits longest first."""
    prompt = load(KIND, setting.prompts.get(KIND))
    batch = watermarks.news(
        setting.database,
        setting.space,
        KIND,
        agent=setting.scope.agent,
        archived=False,
        limit=setting.learning.batch,
        most=setting.learning.attempts,
        now=setting.now(),
    )
    for news in batch:
        own = _own(setting, news)
        shown = _review(setting, news, own)
        if shown.text:
            asked = _Asked(news, own, shown, _profile(setting, setting.database), prompt)
            yield Unit(_question(setting, asked), partial(_learn, setting, asked), news.chat)
        else:
            yield Unit(None, partial(_pass_over, setting, news), news.chat)


class _Asked(NamedTuple):
    """What a model is asked about: the news of a session, and the review and the profile that it was shown.

    `own` are the messages that the review is made of, or more.
    """

    news: News
    own: Sequence[Message]
    review: Review
    profile: Record | None
    prompt: Prompt

    @property
    def said(self) -> list[Line]:
        """What was shown of each message, for quotes to be looked up in: summaries are no words of anybody."""
        first, last = self.review.messages
        return extraction_prompt.reviewed(one for one in self.own if first <= one.seq <= last)


# What is shown


def _own(setting: Setting, news: News) -> list[Message]:
    """Read what is new in a session, without what the memory itself brought into it, and what came from outside.

    A profile stands in every prompt: what a web page says has no way into it.
    """
    learning = setting.learning
    read = log.read(
        setting.database,
        setting.space,
        news.chat,
        after=news.seen,
        before=news.length + 1,
        limit=learning.messages,
    )
    left_out = echo_match.recalled_seqs(read) | brought_in(read, learning.untrusted)
    return [said for one in read if one.seq not in left_out and (said := _without_injected(one))]


def _review(setting: Setting, news: News, own: Sequence[Message]) -> Review:
    frontier = summaries.frontier(setting.database, setting.space, news.chat)
    learning = setting.learning
    extent = Extent(after=news.seen, limit=learning.messages, budget=learning.tokens)
    return review(frontier, reversed(own), extent, setting.count, numbered=True)


def _without_injected(message: Message) -> Message | None:
    content = echo_match.without_injected(message.content)
    if content == message.content:
        return message
    return replace(message, content=content) if content.strip() or message.calls else None


def _profile(setting: Setting, source: Database | Connection) -> Record | None:
    """Read the profile that is rewritten: the agent's own, or the one for all agents.

    The one that the tenant shares is not: what is copied into the space of a user, no erasure in its own could find.
    """
    agent = setting.scope.agent
    wanted = Wanted(kinds=(_PROFILE,), agents=tuple(dict.fromkeys((agent, ""))))
    found = records.read(source, setting.space, NOW.version, wanted)
    return min(found, key=lambda one: one.agent != agent, default=None)


def _question(setting: Setting, asked: _Asked) -> Question:
    profile = asked.profile
    text = profile.text if profile else ""
    filled = asked.prompt.fill(
        version=str(profile.version if profile else 0),
        profile=escape(text, quote=False) or "(none yet)",
        review=asked.review.text,
    )
    return Question(KIND, filled, _SCHEMA, asked.prompt.label, setting.count(text) + _ANSWER)


# What is answered


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a model would have stored: a profile, None for none, and observations; and what was refused already.

    `quotes` are the words of the user that the profile rests on.
    """

    profile: str | None = None
    quotes: Sequence[str] = ()
    observations: Sequence[Observation] = ()
    why: str = ""
    dropped: Counter[str] = field(default_factory=Counter)


def _read(answer: str, asked: _Asked, kinds: Collection[str]) -> _Offer:
    """Read an answer about what was shown. It may have an observation, and one more for each 50 characters, up to five.

    Raises:
        Unreadable: it is neither what was asked for nor says that there is nothing to save.

    """
    if "{" not in answer and _NOTHING.search(answer):
        return _Offer()
    given = table(parse(answer), "the answer")
    dropped = _refused(given, kinds)
    if not (
        dropped or any(has(given, name) for name in (_PROFILE, "observations", *extraction_prompt.KINDS))
    ):
        raise Unreadable("it has neither `profile` nor `observations`.")
    dropped["not asked for"] = sum(
        not any(has({key: None}, name) for name in (*_ASKED_FOR, *kinds)) for key in given
    )
    found: dict[str, Observation] = {}
    said, shown = asked.said, asked.review
    most = min(MOST, 1 + len(shown.text) // _PER)
    for kind, item in _items(given):
        try:
            text = one_line(extraction_prompt.unescaped(text_of(item)))
        except Unreadable:
            dropped["no text"] += 1
            continue
        if flaw := _flaw(kind, text, found, kinds, most):
            dropped[flaw] += 1
        else:
            kept = cast("ObservationKind", kind)
            found[text.casefold()] = extraction_prompt.observation(kept, text, item, shown.messages, said)
    quotes = extraction_prompt.quoted_from_user(listed(picked(given, _QUOTES))[:MOST], said)
    return _Offer(_new_profile(given), quotes, tuple(found.values()), _reason(given), dropped)


def _refused(given: Mapping[str, object], kinds: Collection[str]) -> Counter[str]:
    """Count what stands beside what was asked for and is of a kind that reflection does not write."""
    refused = (kind for kind in kinds if kind not in (_PROFILE, *extraction_prompt.KINDS))
    offered = {f"{kind} not allowed": len(listed(picked(given, kind))) for kind in refused}
    return +Counter(offered)


def _items(given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Give the observations with their kinds, also those in a list of their kind; one that has none is a finding."""
    for item in listed(picked(given, "observations")):
        kind = picked(item, "kind") if isinstance(item, Mapping) else None
        yield str(kind or "finding").strip().casefold().removesuffix("s"), item
    for name in extraction_prompt.KINDS:
        yield from ((name, item) for item in listed(picked(given, name)))


def _flaw(kind: str, text: str, found: Mapping[str, Observation], kinds: Collection[str], most: int) -> str:
    if kind not in extraction_prompt.KINDS:
        return f"{kind} not allowed" if kind in kinds else "unknown kind"
    if not text or _NOTHING.fullmatch(text.rstrip(".!")):
        return "blank"
    if len(text) > extraction_prompt.LONGEST:
        return "too long"
    if extraction_prompt.says_too_little(text):
        return "too short"
    if text.casefold() in found:
        return "repeated"
    if len(found) < most:
        return ""
    return f"more than {most} observation{'s' if most > 1 else ''}"


def _new_profile(given: Mapping[str, object]) -> str | None:
    value = picked(given, _PROFILE)
    if value is None:
        return None
    text = extraction_prompt.unescaped(text_of(value, _PROFILE)).strip()
    says_nothing = text.rstrip(".").casefold() in _NO_PROFILE or (text and not any(map(str.isalpha, text)))
    return None if says_nothing else text


def _reason(given: Mapping[str, object]) -> str:
    value = picked(given, "why")
    # A reason is no reason to hold the profile back: what of it may do harm is left out.
    return (
        shorten_line(cleaned(extraction_prompt.unescaped(value)), _LONGEST_REASON)
        if isinstance(value, str)
        else ""
    )


# What is stored


def _pass_over(setting: Setting, news: News, _: str | None) -> Outcome:
    setting.commit([], _mark(news))
    return Outcome(note=f"chat {news.chat}: nothing to read")


def _learn(setting: Setting, asked: _Asked, answer: str | None) -> Outcome:
    """Store what a model offers, as far as reflection may write it, unless somebody changed the profile meanwhile."""
    offer = _read(answer or "", asked, setting.kinds)
    dropped = Counter(offer.dropped)
    news = _news(setting, asked, offer.observations)
    dropped["recalled"] += len(offer.observations) - len(news)
    offered = [_observed(setting, asked, one) for one in news]
    if offer.profile is not None and _loses_too_much(offer.profile, asked.profile):
        dropped["profile would lose too much"] += 1
    elif offer.profile and _says_more(offer.profile, asked.profile):
        offered.append(_rewritten(setting, asked, offer.profile, offer))
    drafts, unfit = setting.fitting(offered)
    dropped += unfit
    rewrites = any(draft.kind == _PROFILE for draft in drafts)
    check = partial(_check_profile, setting, asked.profile) if rewrites else None
    written = setting.commit(drafts, _mark(asked.news), check=check)
    return Outcome(written, +dropped, f"chat {asked.news.chat}: {_note(written, +dropped)}")


def _news(setting: Setting, asked: _Asked, observations: Sequence[Observation]) -> list[Observation]:
    """Leave out what the agent was told by its memory, unless the user says it as well."""
    if not observations:
        return []
    first, last = asked.review.messages
    read = log.read(setting.database, setting.space, asked.news.chat, after=first - 1, before=last + 1)
    told = Told(setting, read)

    def is_said(one: Observation) -> bool:
        start, end = one.messages or (first, last)
        own = [said.content for said in read if said.role == "user" and start <= said.seq <= end]
        return echo_match.restates(one.text, own)

    return [one for one in observations if is_said(one) or not told.says(one.text, one.messages, "")]


def _mark(news: News) -> Mark:
    return Mark(news.chat, KIND, news.length)


def _loses_too_much(text: str, shown: Record | None) -> bool:
    return shown is not None and len(text) < _KEPT * len(shown.text)


def _says_more(text: str, shown: Record | None) -> bool:
    return shown is None or text.split() != shown.text.split()


def _check_profile(setting: Setting, shown: Record | None, changes: Writing) -> None:
    """Raise Conflict unless the profile is still the one that the model was shown."""
    there = _profile(setting, changes.tx)
    if (there and (there.id, there.version)) != (shown and (shown.id, shown.version)):
        raise Conflict(
            "The profile was changed while a model read the former one.",
            "Try again, so that the session is merged into what it says now.",
        )


def _observed(setting: Setting, asked: _Asked, one: Observation) -> RecordDraft:
    is_bare = extraction_prompt.asks_for_quotes(asked.prompt) and not one.quote
    return _draft(
        setting, asked, one.kind, one.text, one.messages, extraction_prompt.grounds(one), is_bare=is_bare
    )


def _rewritten(setting: Setting, asked: _Asked, text: str, offer: _Offer) -> RecordDraft:
    """Make a draft of a profile. It is written anew and quotes nothing itself; what changes it has to rest on the user's words."""
    meta: dict[str, object] = {"why": offer.why} if offer.why else {}
    if offer.quotes:
        meta["quotes"] = [extraction_prompt.redacted(quote) for quote in offer.quotes]
    if asked.profile is not None and asked.profile.agent != setting.scope.agent:
        meta["of"] = [asked.profile.id]  # it becomes another record, which an erasure has to find
    is_bare = extraction_prompt.asks_for_quotes(asked.prompt, _QUOTES) and not offer.quotes
    return _draft(setting, asked, _PROFILE, text, asked.review.messages, meta, is_bare=is_bare)


def _draft(
    setting: Setting,
    asked: _Asked,
    kind: str,
    text: str,
    messages: Range | None,
    meta: Mapping[str, object],
    *,
    is_bare: bool,
) -> RecordDraft:
    """Make a draft; one that rests on no words is to wait in quarantine."""
    return RecordDraft(
        text,
        kind,
        agent=setting.scope.agent,
        source=f"session:{asked.news.chat}",
        chat=asked.news.chat,
        messages=messages,
        meta={**setting.signed(asked.prompt.label), **meta},
        flags=(UNTRUSTED,) if is_bare else (),
    )


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
