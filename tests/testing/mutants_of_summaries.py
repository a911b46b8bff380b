"""Defects in summaries, and in the way back from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mutant import Mutant, fake_with, of_chats, returning

from fake_chat import LLM, FakeChat
from fake_log import Log, Part
from fake_provider import FakeProvider
from holdfast import ChatStats, CompactionResult, Message, Summary, Window
from holdfast.testing.case import FullChat
from holdfast.types import Expansion, Level


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

    def compact(self, *, full: bool = False, budget: int = 8_000, llm: LLM | None = None) -> CompactionResult:
        with self._space.lock:
            return super().compact(full=full, budget=budget, llm=llm)


class Mending(FakeChat):
    """Hide messages behind nothing when a model fails."""

    def compact(self, *, full: bool = False, budget: int = 8_000, llm: LLM | None = None) -> CompactionResult:
        try:
            return super().compact(full=full, budget=budget, llm=llm)
        except RuntimeError:
            part = self._log().next_part(budget)
            self._log().store(part or (), "sum_failed", "…", "normal")
            raise


class Unchecked(Log):
    """Store a summary, whatever stands there by now."""

    def store(self, part: Part, name: str, text: str, level: Level) -> Summary | None:
        if isinstance(part[0], Summary):
            return super().store(part, name, text, level)
        made = Log(self.id, "", messages=list(self.messages)).store(part, name, text, level)
        if made:
            self.tree[name] = made
        return made


class UncheckedChat(FakeChat):
    def _log(self) -> Log:
        return self._space.logs.get(self.id) or Unchecked(self.id, "")


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


SUMMARIES = (
    Mutant("compaction drops messages", "compact", fake_with(Forgetful)),
    Mutant("a lock is held while a model answers", "compact", fake_with(Locked)),
    Mutant("a failing model hides messages", "compact", fake_with(Mending)),
    Mutant("of two summaries both are stored", "compact", fake_with(UncheckedChat)),
    of_chats("a chat is always crowded", "compact", needs_compaction=lambda *_: True),
    of_chats("summaries leave the window", "compact", window=returning("window", without_summaries)),
    of_chats("an answer of any length is taken", "compact", compact=shortening),
    of_chats("an unknown summary breaks everything", "tools", expand=broken_expansion),
    of_chats("expand gives what contains a summary", "explore", expand=containers),
    of_chats("an unknown summary is empty", "explore", expand=empty_expansion),
    Mutant("a summary of another user opens", "scopes", lambda _: Open()),
)
