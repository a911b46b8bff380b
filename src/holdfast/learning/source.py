"""The source of what is learned: a text, or messages of a chat."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from holdfast.learning.grounding import redacted
from holdfast.learning.job_context import JobContext, Watermark
from holdfast.records.draft import RecordDraft
from holdfast.text.shorten import shorten_line
from holdfast.types import Range

KIND = "observe"
DEFAULT_PRIORITY = 5  # of a record that is not stored yet
_LONGEST = 120  # characters of the name of a source


class Source(NamedTuple):
    """A text, or messages of a chat; with the name and type of its step.

    `is_news` is whether the watermark is to pass it. A chat that `has_ended` gives facts, and its end is read
    however short.
    """

    chat: str
    first: int
    last: int
    text: str = ""
    step: str = ""
    type: str = ""
    is_news: bool = False
    has_ended: bool = False

    @property
    def name(self) -> str:
        """The source of the records, "{type}:{name}"; an id may look like a credential."""
        return redacted(shorten_line(f"{self.type or 'session'}:{self.step or self.chat}", _LONGEST))

    def done(self, seq: int) -> tuple[Watermark, ...]:
        """Return the watermark to move once all up to a seq is learned, if it is to move."""
        return (Watermark(self.chat, KIND, seq),) if self.is_news and self.last else ()

    def draft(
        self,
        context: JobContext,
        kind: str,
        text: str,
        how: str,
        messages: Range | None,
        speaker: str,
        outside: Collection[int],
        *,
        target: str = "",
        meta: Mapping[str, object] = MappingProxyType({}),
        is_bare: bool = False,
    ) -> RecordDraft:
        """Return the draft of what was learned from messages.

        It is untrusted if it `is_bare` of words that it rests on, or if it came from `outside` and the user
        did not say it.
        """
        span = messages if self.chat else None
        came_from = () if speaker == "user" else outside
        is_outside = span is not None and any(span[0] <= seq <= span[1] for seq in came_from)
        return context.draft(
            kind,
            text,
            how,
            source=self.name,
            chat=self.chat,
            messages=span,
            target=target,
            meta=meta,
            is_untrusted=is_bare or is_outside,
        )


def source_of(context: JobContext) -> Source:
    """Return what a job is about: what its payload names, or all that is new in its chat."""
    payload, chat = context.payload, context.jobs[0].chat
    step, kind = str(payload.get("step", "")), str(payload.get("type", ""))
    text, span = payload.get("text"), payload.get("messages")
    if isinstance(text, str):
        return Source("", 0, 0, text, step, kind)
    if isinstance(span, list | tuple) and len(span) == 2:
        return Source(chat, int(span[0]), int(span[1]), "", step, kind)
    seen = context.watermark(chat, context.watermark_kinds(KIND)[0])
    return Source(chat, seen + 1, context.length(chat), "", step, kind, is_news=True, has_ended=not payload)
