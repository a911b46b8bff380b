"""A summary of messages that are in no chat, by sentences of theirs or by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from holdfast.compaction.compactor import resolved
from holdfast.compaction.extract import largest
from holdfast.compaction.summarize import Bounds, SummarySource, WrittenSummary, prompts_of, write
from holdfast.compaction.summary_passages import UNDATED, from_summary, is_work
from holdfast.compaction.work_steps import work_passages
from holdfast.errors import InvalidInput
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import ready
from holdfast.messages.passages import EXPAND, passages
from holdfast.prompt.window import DEFAULTS
from holdfast.safety.guard import mask
from holdfast.text.tokens import CountBy, counter, estimate_tokens
from holdfast.types import MAX_COUNT, AnyMessage, Message, check_count, check_several

if TYPE_CHECKING:
    from holdfast.llm.model import LLM, Model

# How often a model is asked for one summary: again where its answer is longer than the source.
_TRIES = 2


def summarize(
    messages: AnyMessage | Sequence[AnyMessage],
    budget: int = 1_000,
    *,
    llm: LLM | None = None,
    count_tokens: CountBy = estimate_tokens,
) -> str:
    """Return a summary of messages that need not be in a chat, in at most `budget` tokens.

    Credentials in it are masked. `Chat.compact` does the same for a chat, and keeps what stands behind each
    summary.

    >>> summarize([{"role": "user", "content": "We moved the launch to Friday. The weather is fine."}], 12)
    'user: We moved the launch to Friday.'

    Args:
        messages: one, or several, the oldest first, as for `Chat.append`; "" is returned for none.
        budget: tokens of the summary.
        llm: what writes it, as for `Chat.compact`: called for every 20,000 tokens of messages with the
            summary so far. None for sentences of the messages, which also take the place of an answer that
            says nothing of them.
        count_tokens: as for `Memory`.

    Raises:
        InvalidInput: something is not a message, a budget below 1, or no model.
        ModelFailed: the model raised an error, or did not answer in 60 seconds.

    """
    if check_count(budget, "budget") < 1:
        raise InvalidInput("`budget` is 0.", "Pass 1 or more.")
    count, model = counter(count_tokens), resolved(llm)
    is_one = isinstance(messages, Message | Mapping) or hasattr(messages, "model_dump")
    several = check_several((messages,) if is_one else messages, "messages", "messages")
    drafts = [ready(cast("AnyMessage", item)) for item in several]
    every = [
        replace(message, seq=seq, tokens=message_tokens(message, count))
        for seq, message in enumerate(drafts, 1)
    ]
    text = ""
    for part in _parts(every, DEFAULTS.leaf_source if model else MAX_COUNT):
        before, work = from_summary(text), work_passages(part, ongoing=is_work(text))
        tokens = count(text) + sum(message.tokens for message in part)
        source = SummarySource([*before, *passages(part)], tokens, 0, work=[*before, *work] if work else ())
        text = _written(source, Bounds(budget, count, count, _TRIES if model else 0), model)
    lines = [line for line in text.splitlines() if line != UNDATED and not line.startswith(EXPAND.strip())]
    text = mask("\n".join(lines))
    if count(text) <= budget:
        return text
    return text[: largest(len(text), lambda size: count(f"{text[:size]}…") <= budget)].rstrip() + "…"


def _parts(messages: Sequence[Message], most: int) -> Iterator[list[Message]]:
    """Yield messages in parts of at most so many tokens; a larger one is a part of its own."""
    part: list[Message] = []
    tokens = 0
    for message in messages:
        tokens += message.tokens
        if part and tokens > most:
            yield part
            part, tokens = [], message.tokens
        part.append(message)
    if part:
        yield part


def _written(source: SummarySource, bounds: Bounds, model: Model | None) -> str:
    """Return the text of a summary, with the answers of a model, if there is one."""
    steps = write(source, bounds, prompts_of(None) if model else ())
    answer = None
    try:
        while True:
            # The first step of a generator takes None.
            prompt = steps.send(answer)  # type: ignore[arg-type]
            # Only for those who have a model.
            from holdfast.llm.model import complete

            answer = complete(cast("Model", model), prompt, DEFAULTS.patience)
    except StopIteration as end:
        written: WrittenSummary = end.value
        return written.text
