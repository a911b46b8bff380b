"""Defects in what is said, summarised and found."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mutant import Method, Mutant, fake_with, of_chats, of_provider

from holdfast import (
    ChatStats,
    CompactionResult,
    Description,
    Expansion,
    Hit,
    Message,
    Summary,
    Window,
)
from holdfast.testing import FakeProvider
from holdfast.testing.case import WholeChat, everything, tokens_of
from holdfast.testing.fake_chat import LLM, FakeChat
from holdfast.testing.log import Log, Part
from holdfast.types import Level

# Windows


def reversed_window(chat: WholeChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    window = chat.window(budget, tail=tail)
    return replace(window, messages=window.messages[::-1])


def single_messages(chat: WholeChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    """Take one message after the other, whatever belongs together."""
    window, kept, tokens = everything(chat), list[Message](), 0
    for message in reversed(window.messages):
        if tokens + message.tokens > budget and len(kept) >= (1 if tail is None else tail):
            break
        kept.insert(0, message)
        tokens += message.tokens
    return replace(window, messages=tuple(kept), tokens=tokens, budget=budget)


def collapsed_tail(chat: WholeChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    short = tail is not None and tail > chat.stats().messages
    return chat.window(budget, tail=0 if short else tail)


def unknown_raises(chat: WholeChat) -> ChatStats:
    stats = chat.stats()
    if not stats.messages:
        raise KeyError(chat.id)
    return stats


def one_by_one(chat: WholeChat, messages: Sequence[Message]) -> list[Message]:
    stored = []
    for message in messages:
        stored += chat.append([message])
        time.sleep(0)  # let other threads go on
    return stored


def calls_apart(chat: WholeChat, messages: Sequence[Message]) -> list[Message]:
    """Store the text of an assistant and its calls as two messages."""
    parts = []
    for message in messages:
        if message.calls and message.content:
            parts += [replace(message, calls=()), replace(message, content="")]
        else:
            parts.append(message)
    return chat.append(parts)


def changing(change: Callable[[Message], Message]) -> Method:
    """Change each message before it is stored."""
    return lambda chat, messages: chat.append([change(message) for message in messages])


def numbered_from_zero(chat: WholeChat, messages: Sequence[Message]) -> list[Message]:
    return [replace(message, seq=message.seq - 1) for message in chat.append(messages)]


class RacyChat(FakeChat):
    """Read, think, write: whoever wrote meanwhile is lost."""

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        log = self._space.logs.setdefault(self.id, Log(self.id, ""))
        copy = replace(log, messages=list(log.messages))
        stored = copy.append(messages)
        time.sleep(0)  # let other threads go on
        log.messages = copy.messages
        return stored


CORE = (
    of_chats("messages out of order", "core", window=reversed_window),
    of_chats(
        "the tail is cut", "core", window=lambda chat, budget=8_000, tail=None: chat.window(budget, tail=0)
    ),
    of_chats(
        "a tail of 0 keeps one",
        "core",
        window=lambda chat, budget=8_000, tail=0: chat.window(budget, tail=tail or 1),
    ),
    of_chats("a tail longer than the chat is none", "core", window=collapsed_tail),
    of_chats("a call and its result are parted", "core", window=single_messages),
    of_chats(
        "the budget is ignored",
        "core",
        window=lambda chat, budget=8_000, tail=None: chat.window(10**9, tail=tail),
    ),
    of_chats(
        "what is left out is not stated",
        "core",
        window=lambda chat, budget=8_000, tail=None: replace(chat.window(budget, tail=tail), omitted=()),
    ),
    of_chats("stats of an unknown chat raise", "core", stats=unknown_raises),
    of_chats("a batch is stored one by one", "core", append=one_by_one),
    of_chats("text and calls are two messages", "core", append=calls_apart),
    of_chats("numbers begin with 0", "core", append=numbered_from_zero),
    of_chats("times are lost", "core", append=changing(lambda one: replace(one, at=datetime.now(UTC)))),
    of_chats(
        "long messages are cut",
        "core",
        append=changing(lambda one: replace(one, content=one.content[:65_536])),
    ),
    of_chats(
        "words are trimmed",
        "core",
        append=changing(lambda one: replace(one, content=" ".join(one.content.split()))),
    ),
    of_chats("speakers lose their names", "core", append=changing(lambda one: replace(one, name=None))),
    of_provider("all chats are one", "core", chat=lambda memory, _: memory.chat("c")),
    Mutant("an append is lost when two come at once", "core", fake_with(RacyChat)),
    of_provider("everybody is the same user", "scopes", scoped=lambda memory, **_: memory.scoped()),
)


# Summaries


class Forgetful(FakeChat):
    """Drop the messages that a summary stands for."""

    def history(
        self, limit: int | None = None, *, before: int | None = None, after: int | None = None
    ) -> list[Message]:
        return [
            one for one in super().history(limit, before=before, after=after) if one in self._log().rest()
        ]

    def stats(self) -> ChatStats:
        return replace(super().stats(), messages=len(self._log().rest()))


class Locked(FakeChat):
    """Hold the lock while a model answers."""

    def compact(
        self, mode: Any = "incremental", *, budget: int = 8_000, llm: LLM | None = None
    ) -> CompactionResult:
        with self._space.lock:
            return super().compact(mode, budget=budget, llm=llm)


class Mending(FakeChat):
    """Hide messages behind nothing when a model fails."""

    def compact(
        self, mode: Any = "incremental", *, budget: int = 8_000, llm: LLM | None = None
    ) -> CompactionResult:
        try:
            return super().compact(mode, budget=budget, llm=llm)
        except RuntimeError:
            part = self._log().next_part(budget)
            self._log().store(part or (), "sum_failed", "…", "normal")
            raise


class Parting(Log):
    """Summarise so many messages, whatever belongs together."""

    def _leaf(self) -> tuple[Message, ...]:
        rest = self.rest()
        return tuple(rest[:12]) if len(rest) > 16 else ()


class PartingChat(FakeChat):
    def _log(self) -> Log:
        return self._space.logs.get(self.id) or Parting(self.id, "")


class Unchecked(Log):
    """Store a summary, whatever stands there by now."""

    def store(self, part: Part, name: str, text: str, level: Level) -> Summary | None:
        if isinstance(part[0], Summary):
            return super().store(part, name, text, level)
        made = Log(self.id, "", list(self.messages)).store(part, name, text, level)
        if made:
            self.tree[name] = made
        return made


class UncheckedChat(FakeChat):
    def _log(self) -> Log:
        return self._space.logs.get(self.id) or Unchecked(self.id, "")


class Tailless(Log):
    """Summarise to the last message."""

    def _leaf(self) -> tuple[Message, ...]:
        return tuple(self.rest()[:10])


class TaillessChat(FakeChat):
    def _log(self) -> Log:
        return self._space.logs.get(self.id) or Tailless(self.id, "")


def beside_summaries(chat: WholeChat, budget: int = 8_000, *, tail: int | None = None) -> Window:
    """Show messages as well that a summary stands for."""
    window = chat.window(budget, tail=tail)
    if not window.summaries or window.omitted:
        return window
    behind = tuple(chat.history(before=window.messages[0].seq if window.messages else None))
    messages = (*behind, *window.messages)
    return replace(window, messages=messages, tokens=tokens_of(messages) + tokens_of(window.summaries))


def containers(
    chat: WholeChat, summary: str, token_cap: int = 4_000, *, cursor: str | None = None
) -> Expansion:
    found = chat.expand(summary, token_cap, cursor=cursor)
    if not found.summary.depth:
        return found
    parents = [chat.describe(one).summary for one in chat.describe(summary).parents]
    return replace(found, children=tuple(parents), truncated=False, cursor=None)


def empty_expansion(
    chat: WholeChat, summary: str, token_cap: int = 4_000, *, cursor: str | None = None
) -> object:
    try:
        return chat.expand(summary, token_cap, cursor=cursor)
    except ValueError:
        return None


def swapped(chat: WholeChat, summary: str) -> Description:
    found = chat.describe(summary)
    return replace(found, parents=found.children, children=found.parents)


class Open(FakeProvider):
    """Open the summaries of everybody."""

    def chat(self, name: str, /) -> FakeChat:
        spaces = self._spaces

        class OpenChat(FakeChat):
            def _of_summary(self, summary: str) -> Log:
                logs = [log for space in spaces.values() for log in space.logs.values()]
                return next((log for log in logs if summary in log.tree), None) or super()._of_summary(
                    summary
                )

        return OpenChat(name, self._scope, self._space)


def broken_expansion(
    chat: WholeChat, summary: str, token_cap: int = 4_000, *, cursor: str | None = None
) -> object:
    try:
        return chat.expand(summary, token_cap, cursor=cursor)
    except ValueError as error:
        raise RuntimeError("no row") from error


SUMMARIES = (
    Mutant("compaction drops messages", "compact", fake_with(Forgetful)),
    Mutant("a lock is held while a model answers", "compact", fake_with(Locked)),
    Mutant("a failing model hides messages", "compact", fake_with(Mending)),
    Mutant("a summary ends within a tool use", "compact", fake_with(PartingChat)),
    Mutant("of two summaries both are stored", "compact", fake_with(UncheckedChat)),
    Mutant("the newest messages are summarised", "compact", fake_with(TaillessChat)),
    of_chats("summarised messages are shown as well", "compact", window=beside_summaries),
    of_chats("a chat is always crowded", "compact", crowded=lambda *_: True),
    of_chats(
        "tokens are taken for a share",
        "compact",
        crowded=lambda chat, _, most=0.75: chat.stats().context_tokens > most,
    ),
    of_chats(
        "summaries leave the window",
        "compact",
        window=lambda chat, budget=8_000, tail=None: replace(chat.window(budget, tail=tail), summaries=()),
    ),
    of_chats(
        "an answer of any length is taken",
        "compact",
        compact=lambda chat, mode="incremental", budget=8_000, llm=None: chat.compact(
            mode, budget=budget, llm=llm and (lambda prompt: llm(prompt)[:100] or "nothing")
        ),
    ),
    of_chats("an unknown summary breaks everything", "tools", expand=broken_expansion),
    of_chats("expand gives what contains a summary", "explore", expand=containers),
    of_chats("parents and children are swapped", "explore", describe=swapped),
    of_chats("an unknown summary is empty", "explore", expand=empty_expansion),
    of_chats(
        "expand knows no cap",
        "explore",
        expand=lambda chat, id_, token_cap=0, cursor=None: chat.expand(id_, 10**9, cursor=cursor),
    ),
    of_chats(
        "expand does not lead on",
        "explore",
        expand=lambda chat, id_, token_cap=4_000, cursor=None: replace(
            chat.expand(id_, token_cap, cursor=cursor), truncated=False, cursor=None
        ),
    ),
    Mutant("a summary of another user opens", "scopes", lambda _: Open()),
)


# Finding


def like(chat: WholeChat, query: str, scope: str = "both", limit: int = 20) -> list[Hit]:
    """Search as LIKE does."""
    pattern = re.escape(query).replace("%", ".*").replace("_", ".")
    hits = [hit for one in ("alpha beta", "file", "discount", "boxes", query) for hit in chat.search(one)]
    return [hit for hit in hits if re.search(pattern, hit.text, re.IGNORECASE)][:limit]


def limit_for_each(chat: WholeChat, query: str, scope: Any = "both", limit: int = 20) -> list[Hit]:
    if scope != "both":
        return chat.search(query, scope, limit)
    return [*chat.search(query, "messages", limit), *chat.search(query, "summaries", limit)]


def exact_case(chat: WholeChat, query: str, scope: Any = "both", limit: int = 20) -> list[Hit]:
    return [hit for hit in chat.search(query, scope, limit) if query in hit.text]


FINDING = (
    of_chats("% and _ are wildcards", "search", search=like),
    of_chats(
        "the limit of a search is ignored",
        "search",
        search=lambda chat, query, scope="both", limit=20: chat.search(query, scope, 10**6),
    ),
    of_chats("each scope has a limit of its own", "search", search=limit_for_each),
    of_chats("case matters", "search", search=exact_case),
    of_chats(
        "the scope is ignored",
        "search",
        search=lambda chat, query, scope="both", limit=20: chat.search(query, "both", limit),
    ),
    of_provider(
        "the limit of a recall is ignored",
        "recall",
        recall=lambda memory, query, limit=10: memory.recall(query, limit=10**6),
    ),
    of_provider(
        "the worst is recalled first",
        "recall",
        recall=lambda memory, query, limit=10: memory.recall(query, limit=limit)[::-1],
    ),
)
