"""Defects in summaries, and in the way back from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import RLock
from typing import Any

from mutant import Mutant, altered, of_chats, returning

from holdfast import ChatStats, CompactionResult, Memory, Message, ModelFailed, Summary, Window
from holdfast.contract import Provider
from holdfast.prompt.window import Compaction, Lossless
from holdfast.testing.case import FullChat, full_window
from holdfast.types import Expansion

LLM = Callable[[str], str]
LOCK = RLock()
IMPATIENT = Lossless(compaction=Compaction(patience=1.0))  # with a model that waits for the lock


def forgetful(chat: FullChat, *args: Any, **options: Any) -> list[Message]:
    """Drop the messages that a summary stands for."""
    summarised = chat.stats().summarised
    return [one for one in chat.history(*args, **options) if one.seq > summarised]


def forgotten(stats: ChatStats) -> ChatStats:
    return replace(stats, messages=stats.messages - stats.summarised)


def locked_compact(chat: Any, *, budget: int = 8_000, llm: LLM | None = None, **options: Any) -> object:
    """Hold the lock while a model answers."""
    with LOCK:
        return chat.compact(llm=llm, policy=replace(IMPATIENT, budget=budget), **options)


def locked_append(chat: FullChat, messages: list[Message]) -> list[Message]:
    with LOCK:
        return chat.append(messages)


def mending(chat: Any, *, llm: LLM | None = None, **options: Any) -> object:
    """Hide messages behind summaries when a model fails."""
    try:
        return chat.compact(llm=llm, **options)
    except ModelFailed:
        chat.compact(**options)
        raise


def storing_both(memory: Memory) -> Provider:
    """Store a summary, whatever stands there by now."""
    stale: list[Summary] = []

    def compact(chat: Any, *, llm: LLM | None = None, **options: Any) -> CompactionResult:
        before = full_window(chat).summaries
        result: CompactionResult = chat.compact(llm=llm, **options)
        if result.noop:
            stale.extend(full_window(chat).summaries[len(before) :])
        return result

    def with_stale(window: Window) -> Window:
        return replace(window, summaries=(*stale, *window.summaries))

    return altered(memory, {}, {"compact": compact, "window": returning("window", with_stale)})


def containers(chat: FullChat, summary: str, *args: int, **options: Any) -> Expansion:
    found = chat.expand(summary, *args, **options)
    if not found.summary.depth:
        return found
    parents = [chat.describe(one).summary for one in chat.describe(summary).parents]
    return replace(found, children=tuple(parents), truncated=False, cursor=None)


def empty_expansion(chat: FullChat, *args: Any, **options: Any) -> object:
    try:
        return chat.expand(*args, **options)
    except ValueError:
        return None


def broken_expansion(chat: FullChat, *args: Any, **options: Any) -> object:
    try:
        return chat.expand(*args, **options)
    except ValueError as error:
        raise RuntimeError("no row") from error


def without_summaries(window: Window) -> Window:
    return replace(window, summaries=())


def shortening(chat: Any, *, llm: LLM | None = None, **options: Any) -> object:
    return chat.compact(llm=llm and (lambda prompt: llm(prompt)[:100] or "nothing"), **options)


def open_to_all(memory: Memory) -> Provider:
    """Open the summaries of a user for everybody."""
    own = memory.chat("c")
    opening = {"describe": property(lambda _: own.describe), "expand": property(lambda _: own.expand)}
    return altered(memory, {}, opening)


SUMMARIES = (
    of_chats("compaction drops messages", "compact", history=forgetful, stats=returning("stats", forgotten)),
    of_chats("a lock is held while a model answers", "compact", compact=locked_compact, append=locked_append),
    of_chats("a failing model hides messages", "compact", compact=mending),
    Mutant("of two summaries both are stored", "compact", storing_both),
    of_chats("a chat is always crowded", "compact", needs_compaction=lambda *_: True),
    of_chats("summaries leave the window", "compact", window=returning("window", without_summaries)),
    of_chats("an answer of any length is taken", "compact", compact=shortening),
    of_chats("an unknown summary breaks everything", "tools", expand=broken_expansion),
    of_chats("expand gives what contains a summary", "explore", expand=containers),
    of_chats("an unknown summary is empty", "explore", expand=empty_expansion),
    Mutant("a summary of another user opens", "scopes", open_to_all),
)
