"""The summary tree of a chat, and the result of a compaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from holdfast.types.messages import Message

Level = Literal["normal", "aggressive", "capped", "deterministic"]


@dataclass(frozen=True, slots=True)
class Summary:
    """A node of a chat's summary tree: it stands for the messages `first` to `last`, which stay in the log.

    A leaf (`depth` 0) was made of messages, any other of the summaries one level below it; `parent` is the id
    of the summary that it is a part of, "" for one of the frontier. `tokens` is what it costs in a prompt,
    `source_tokens` what its `messages` messages cost. `since` and `until` are the times of the earliest and
    the latest of them. `level` says how it was made: "normal" and "aggressive" are two ways of asking the
    model, "capped" is an answer that was cut because it was far too long, "deterministic" was made of
    sentences of the source without a model. `model` names the model and `prompt` its prompt, such as
    "leaf v1"; both are "" where none was called. `at` is when it was made.
    """

    id: str
    chat: str
    depth: int
    first: int
    last: int
    text: str
    tokens: int = field(kw_only=True)
    parent: str = field(default="", kw_only=True)
    since: datetime = field(kw_only=True)
    until: datetime = field(kw_only=True)
    level: Level = field(kw_only=True)
    messages: int = field(kw_only=True)
    source_tokens: int = field(kw_only=True)
    model: str = field(default="", kw_only=True)
    prompt: str = field(default="", kw_only=True)
    at: datetime = field(kw_only=True)

    @property
    def kind(self) -> Literal["leaf", "condensed"]:
        """Whether it was made of messages ("leaf") or of summaries ("condensed")."""
        return "condensed" if self.depth else "leaf"


@dataclass(frozen=True, slots=True)
class Description:
    """The place of a summary in its tree: `parents`, the nearest first, and `children`, its sources.

    The children of a leaf are messages, `summary.first` to `summary.last`, and not listed.
    """

    summary: Summary
    parents: tuple[str, ...]
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """The source of a summary: the messages of a leaf, or the children of a condensed one.

    `truncated` is set when there is more than the limit allowed; pass `cursor` to `expand` for the next part.
    """

    summary: Summary
    messages: tuple[Message, ...]
    children: tuple[Summary, ...]
    truncated: bool
    cursor: str | None


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of a compaction: what it made, what that cost, and why it stopped.

    `summaries` are those it made, in their order; each has its level. `messages` were covered for the first
    time. `tokens_before` and `tokens_after` are what stood for the chat in a window. `calls` of the model
    were made, with `prompt_tokens` and `answer_tokens` by the memory's own counter. `why` is a sentence: why
    it stopped. `beyond` are the ids of the summaries that as a last resort got more parts than the policy's
    `fan_in`.
    """

    summaries: tuple[Summary, ...]
    messages: int
    tokens_before: int
    tokens_after: int
    calls: int
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    why: str
    beyond: tuple[str, ...] = ()

    @property
    def leaves(self) -> int:
        """How many summaries of messages it made."""
        return sum(not summary.depth for summary in self.summaries)

    @property
    def nodes(self) -> int:
        """How many summaries of summaries it made."""
        return sum(summary.depth > 0 for summary in self.summaries)

    @property
    def noop(self) -> bool:
        """Whether nothing was changed."""
        return not self.summaries
