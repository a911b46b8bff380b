"""Answers that say nothing of their source: refusals, errors, values of programs. They are no summaries."""

from __future__ import annotations

from compaction_chats import Scribe, policy, tell

from holdfast import Memory
from holdfast.compaction.summarize import speaks_of
from holdfast.messages.passages import Passage
from tables import each

WIDE = policy(1_000, leaf_source=1_000)
REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I'm sorry, but I can't assist with that.",
    "I can't help the user with that.",
    "As an AI language model, I am unable to process this request.",
    "Es tut mir leid, dabei kann ich nicht helfen.",
    "抱歉，我无法帮助您完成此请求。",
    "Error: 429 Too Many Requests",
    "null",
    "N/A",
    "There is nothing to summarize.",
    "Please provide the conversation that you want summarized.",
    "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    '{"error":{"message":"context_length_exceeded"}}',
    "{}",
    "Traceback (most recent call last): ValueError",
]


@each("answer", REFUSALS)
def test_an_answer_that_says_nothing_of_its_source_is_no_summary(quick: Memory, answer: str) -> None:
    chat = quick.chat(f"of {REFUSALS.index(answer)}")
    tell(chat, 40)
    result = chat.compact(full=True, llm=Scribe(answer), policy=WIDE)
    assert result.calls
    assert {one.level for one in chat.tree()} == {"deterministic"}
    assert answer not in [one.text for one in chat.tree()]


@each(
    "answer",
    [
        "Cranes.",
        "Boxes went to the piers; the cranes lift them all day.",
        "Krane luden crane7 und crane12 auf pier3.",
    ],
)
def test_a_short_answer_of_its_source_is_a_summary(answer: str) -> None:
    assert speaks_of(
        answer, [Passage("The crane7 lifts boxes to pier3."), Passage("Then crane12 lifts a box.")]
    )


def test_a_word_that_a_long_source_has_once_proves_nothing() -> None:
    source = [Passage(f"The crane lifts box {n} to the pier.") for n in range(40)]
    refusal = "I'm sorry, I can't help with that."
    assert not speaks_of(refusal, [*source, Passage("Sorry, can you help?")])
    assert speaks_of("The crane lifts boxes.", [*source, Passage("Sorry, can you help?")])
