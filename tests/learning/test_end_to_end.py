"""The eight coding sessions, learned from with a model that follows a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scripted import Scripted, lines
from holdfast import Learning, Memory, Record
from holdfast.kinds import FIL
from holdfast.learning import question
from holdfast.learning.grounding import read_observations
from holdfast.text.sentences import sentences
from holdfast.text.tokens import estimate_tokens
from holdfast_cli.formats.importing import import_paths

pytestmark = pytest.mark.slow

SESSIONS = 8
LEAST, LONGEST = 8, 900  # words and characters of a sentence that is quoted


@pytest.fixture(scope="module")
def memory(shared_data: Path) -> Iterator[Memory]:
    """Import all sessions once, and end them."""
    with Memory(":memory:", user="ada", agent="coder", learning=Learning(limits={})) as opened:
        import_paths(opened, sorted((shared_data / "agent_sessions").glob("coding-*.jsonl")))
        for chat in opened.chats():
            opened.chat(chat.id).end()
        yield opened


def everything(memory: Memory) -> list[Record]:
    return [*memory.records(), *list(memory.quarantine)]


def test_no_true_quote_of_a_session_is_refused(memory: Memory) -> None:
    """Return every sentence shown to a model, cut where it may be cut, also in the middle of a word."""
    refused, read = [], 0
    for chat in memory.chats():
        messages = memory.chat(chat.id).history()
        for part in question.split_messages(messages, estimate_tokens, 8_000):
            told = [one for line in lines(part.transcript) for one in sentences(line.text)]
            whole = [one for one in told if len(one.split()) > LEAST and len(one) < LONGEST][::4]
            quotes = [quote for one in whole for quote in (one[:60], f"“{one[:45].upper()}…”")]
            items = [{"text": f"Observation number {n}.", "quote": quote} for n, quote in enumerate(quotes)]
            own = replace(part, transcript="x" * 100 * len(items))
            found = read_observations({"findings": items}, own, messages, FIL).observations
            read += len(found)
            refused += [quotes[n] for n, one in enumerate(found) if not one.quote]
    assert read > 1_000
    assert refused == []


def test_something_is_learned_of_every_session_and_a_second_pass_adds_no_record(memory: Memory) -> None:
    """Each session is ended again, and then read again from its beginning."""
    result = memory.learning.work(llm=Scripted())
    assert (result.postponed, result.failed, result.waiting) == ((), (), 0)
    found = [one for one in everything(memory) if one.kind in FIL]
    assert (len(found) > 100, len({one.chat for one in found})) == (True, SESSIONS)
    assert [one.text for one in found if not one.meta.get("quote")] == []
    before = {record.id for record in everything(memory)}
    for chat in memory.chats():
        memory.chat(chat.id).end()
    again = memory.learning.work(llm=Scripted())
    assert (again.postponed, again.failed) == ((), ())
    for chat in memory.chats():
        last = memory.chat(chat.id).stats().messages
        extraction = memory.chat(chat.id).extract(messages=(1, last), llm=Scripted())
        assert (extraction.why, extraction.records) == ("", ())
    assert {record.id for record in everything(memory)} == before
    assert memory.verify().problems == ()
