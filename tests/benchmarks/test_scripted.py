"""The model that follows a script, which tests of learning use: what it says is in what it was asked."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from benchmarks.scripted import OBSERVATIONS, Line, Scripted, lines
from holdfast import Message, Record
from holdfast.kinds import FIL
from holdfast.learning import question, ranking
from holdfast.learning.grounding import Observation, read_observations
from holdfast.llm.json_answers import parse
from holdfast.llm.prompt_files import load
from holdfast.text.tokens import estimate_tokens
from tables import each

SAID = (
    "We decided to keep the settings of the billing worker in deploy/billing.toml.",
    "The migration failed because the lock table had no index on its second column.",
    "The nightly export now writes <4 GB> of files & takes eleven minutes in all.",
)
CHAT = [Message("user", text, seq=n) for n, text in enumerate(SAID, 1)]


def observed(model: Scripted, messages: Sequence[Message] = CHAT) -> Sequence[Observation]:
    (part,) = question.split_messages(messages, estimate_tokens, 100_000)
    asked = question.request("observe", part, load("session"), ("observe",), {"step": "monday"})
    reading = read_observations(parse(model(asked.prompt)), part, messages, FIL)
    assert reading.dropped == {}
    return reading.observations


def test_observations_are_sentences_and_quote_the_messages_they_come_from() -> None:
    found = observed(Scripted())
    assert {one.kind for one in found} == {"finding", "insight", "lesson"}
    assert {one.messages: one.text for one in found} == {(n, n): text for n, text in enumerate(SAID, 1)}
    assert all(one.quote and one.quote in one.text for one in found)


def test_the_same_question_has_the_same_answer_and_other_words_are_others() -> None:
    assert observed(Scripted()) == observed(Scripted())
    texts, others = ({one.text for one in observed(Scripted(otherwise=is_so))} for is_so in (False, True))
    assert len(texts) == len(others)
    assert texts != others


def test_there_are_no_more_observations_than_models_make() -> None:
    many = [
        Message("user", f"The worker number {n} of the queue runs on port {n} in Lisbon.", seq=n)
        for n in range(1, 30)
    ]
    assert len(observed(Scripted(), many)) == OBSERVATIONS


@each(
    ("transcript", "read"),
    [
        (
            "[4] user (Ada), 2026-01-02 12:00: It began with\n    a &amp; b: &lt;c&gt;",
            [Line(4, "user", "It began with\n    a & b: <c>")],
        ),
        ("What was said.\n#7 [2026-01-02 12:00 | user] Hello: there", [Line(7, "user", "Hello: there")]),
        (
            "[user] One\n[2026-01-02 12:00 | tool] Two",
            [Line(0, "user", "One\n"), Line(0, "tool", "Two")],
        ),
        ("No message.\n    At all.", [Line(0, "", "No message.\n    At all.")]),
    ],
)
def test_transcripts_of_all_kinds_are_read(transcript: str, read: list[Line]) -> None:
    assert lines(transcript) == read


@each(
    ("new", "is_same"),
    [("The export of the billing worker takes 11 minutes", True), ("Ada plays chess on Sunday", False)],
)
def test_pairs_are_joined_by_their_words(new: str, is_same: bool) -> None:
    old = "The export of the billing worker takes\n    11 minutes now"
    pairs = f"Two of the kind finding:\n1. [from reflect] {old}\n2. [2026-01-02, agent] {new}"
    changes = json.loads(Scripted()(load("tidy").fill(groups=pairs)))["changes"]
    assert [one["entries"] for one in changes] == ([[1, 2]] if is_same else [])


def test_episodes_are_ranked_and_what_the_script_does_not_know_is_an_error() -> None:
    shown = [Record(str(n), "episode", f"Session {n} went well.") for n in range(2)]
    asked = ranking.request(shown, "what went well?", 5, load("rank"))
    assert ranking.read_choice(Scripted()(asked.prompt), shown) == shown
    with pytest.raises(LookupError):
        Scripted()("Tell me a story.")
