"""The eight coding sessions, learned from with a model behind a local server, from import to verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.scripted import Scripted, lines
from holdfast import Learning, Memory, Record, WorkResult
from holdfast.kinds import FIL
from holdfast.learning import question
from holdfast.learning.grounding import read_observations
from holdfast.text.sentences import sentences
from holdfast.text.tokens import estimate_tokens
from holdfast_cli.formats.importing import import_paths
from llm_server import Body, Server, completion, prompt_of

pytestmark = pytest.mark.slow

SESSIONS = 8
NAME = "openai-chat:scripted"
LEAST, LONGEST = 8, 900  # words and characters of a sentence that is quoted


class Done(NamedTuple):
    """The sessions, imported and worked through."""

    memory: Memory
    result: WorkResult


@pytest.fixture(scope="module")
def done(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Work through all sessions once; the tests look at what came of it."""
    script = Scripted()
    place = tmp_path_factory.mktemp("learned") / "memory.db"

    def answer(body: Body) -> tuple[int, str]:
        return 200, completion(script(prompt_of(body)))

    with pytest.MonkeyPatch.context() as patch, Server(answer) as server:
        patch.setenv("OPENAI_API_KEY", "any")
        patch.setenv("OPENAI_BASE_URL", server.url)
        with Memory(place, user="ada", agent="coder", learning=Learning(limits={})) as memory:
            import_paths(memory, sorted((shared_data / "agent_sessions").glob("coding-*.jsonl")))
            for chat in memory.chats():
                memory.chat(chat.id).end()
            result = memory.learning.work(llm=NAME)
            yield Done(memory, result)


def everything(memory: Memory) -> list[Record]:
    return [*memory.records(), *list(memory.quarantine)]


def quoted(record: Record) -> str:
    """Give what of a record the script has copied from messages; the rest are our own labels."""
    if record.kind == "episode":
        return str(record.meta["outcome"])
    if record.kind == "profile":  # what each session added stands last
        return record.text.rpartition("\n")[2]
    return record.text


def test_all_jobs_are_done(done: Done) -> None:
    assert (done.result.postponed, done.result.failed, done.result.waiting) == ((), (), 0)
    kinds = Counter(job.kind for job in done.result.done)
    assert (kinds["observe"], kinds["episode"]) == (SESSIONS, SESSIONS)
    assert kinds["reflect"] >= 1
    assert [job for job in done.memory.learning.jobs() if job.kind in ("observe", "episode")] == []


def test_no_true_quote_of_a_session_is_refused(done: Done) -> None:
    """Return every sentence shown to a model, cut where it may be cut, also in the middle of a word."""
    refused, read = [], 0
    for chat in done.memory.chats():
        messages = done.memory.chat(chat.id).history()
        for part in question.split_messages(messages, estimate_tokens, 8_000):
            told = [one for line in lines(part.transcript) for one in sentences(line.text)]
            whole = [one for one in told if len(one.split()) > LEAST and len(one) < LONGEST]
            quotes = [quote for one in whole for quote in (one[:60], f"“{one[:45].upper()}…”")]
            items = [{"text": f"Observation number {n}.", "quote": quote} for n, quote in enumerate(quotes)]
            own = replace(part, transcript="x" * 100 * len(items))
            found = read_observations({"findings": items}, own, messages, FIL).observations
            read += len(found)
            refused += [quotes[n] for n, one in enumerate(found) if not one.quote]
    assert read > 1_000
    assert refused == []


def test_a_second_pass_adds_no_record(done: Done) -> None:
    """Each session is ended again, and then read again from its beginning."""
    memory = done.memory
    before = {record.id for record in everything(memory)}
    for chat in memory.chats():
        memory.chat(chat.id).end()
    again = memory.learning.work(llm=NAME)
    assert (again.postponed, again.failed) == ((), ())
    assert {record.id for record in everything(memory)} == before
    for chat in memory.chats():
        last = memory.chat(chat.id).stats().messages
        found = memory.chat(chat.id).extract(messages=(1, last), llm=NAME)
        assert (found.why, found.records) == ("", ())
    assert {record.id for record in everything(memory)} == before
    assert memory.verify().problems == ()
