"""What an erasure leaves: all other words, numbers that go on, receipts, and a sound database."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import erasures
import psycopg
import pytest
from erasures import Marks, fill, readable, say, stored

from holdfast import Memory, Message
from holdfast_cli.formats.export import export_chats
from learning_scripts import Clock
from stored_texts import erasures_of

ada = erasures.ada

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def damage(location: str, sql: str) -> None:
    """Change the tables behind the back of Holdfast."""
    if location.startswith("postgres"):
        with psycopg.connect(location, autocommit=True) as connection:
            connection.execute(sql.replace("FROM ", "FROM holdfast.").encode())
    else:
        with closing(sqlite3.connect(location, isolation_level=None)) as connection:
            connection.execute(sql)


# All else stays


def unused(text: str) -> str:
    """Leave out how often a note was asked for: reading everything asks for it."""
    return re.sub(r", uses=\d+, used=(?:None|datetime\.datetime\(.*?timezone\.utc\))", "", text)


@pytest.mark.slow
def test_the_words_of_a_chat_a_record_and_a_user_go_and_all_else_stays(
    ada: Memory, shared_location: str
) -> None:
    mark, kept = Marks("a"), Marks("k")
    others = (ada, ada.scoped(user="bob"), ada.scoped(tenant="acme"), ada.scoped(user=""))
    for number, other in enumerate(others):
        other.chat("other").append(role="user", content=kept(f"message {number}"))
        other.chat("other").remember(kept(f"record {number}"), "finding")
        other.chat("other").remember(kept(f"note {number}"), "note")
        other.chat("other").scratchpad["name"] = kept(f"pad {number}")
        other.scratchpad["name"] = kept(f"pad of the user {number}")
        other.scratchpad["temp:name"] = kept(f"temporary {number}")
        other.chat("other").prompt()
    for other in others[1:]:
        other.chat("secret").append(role="user", content=kept("the same name"))
        fill(other, "secret", kept)
    own = [place for place in kept.words if place.endswith(" 0")]
    fill(ada, "secret", mark)
    record = ada.remember(mark("record of no chat"), "finding").id
    unread = set(mark.words) - set(mark.left_in(readable(ada, mark)))
    assert unread == {"run tag", "run pad", "run pad value"}, "of all others some read gives the words"
    before = [unused(readable(other, kept, recall=False)) for other in others[1:]]
    ada.erase(chat="secret")
    ada.erase(record=record)
    assert mark.left_in(readable(ada, mark)) == mark.left_in(stored(shared_location)) == []
    assert set(own) <= set(kept.left_in(readable(ada, kept)))
    again = ada.chat("secret")
    run = again.run("going on")
    assert (again.history(), again.notes(), run.notes()) == ([], [], [])
    assert (list(again.scratchpad), list(run.scratchpad)) == ([], [])
    ada.erase(user="ada")
    assert not {*own} & {*kept.left_in(stored(shared_location))}
    assert [unused(readable(other, kept, recall=False)) for other in others[1:]] == before
    assert ada.verify().problems == ()


def test_what_is_kept_in_memory_only_goes_with_its_own_chat_alone(ada: Memory) -> None:
    ada.scratchpad["temp:key"] = "of the user"
    ada.chat("monday").append([Message("user", "a"), Message("user", "b")])
    ada.chat("monday").scratchpad["temp:key"] = "of the chat"
    ada.chat("monday").scratchpad["key"] = "of the chat"
    ada.erase(record=ada.remember("Ada runs", "finding").id)
    assert dict(ada.scratchpad) == {"temp:key": "of the user"}
    ada.erase(chat="monday", messages=1)
    assert dict(ada.chat("monday").scratchpad) == {"key": "of the chat", "temp:key": "of the chat"}
    ada.erase(chat="monday")
    assert dict(ada.chat("monday").scratchpad) == {}
    assert dict(ada.scratchpad) == {"temp:key": "of the user"}


def test_a_call_without_its_erased_result_makes_a_prompt_that_a_model_takes(ada: Memory) -> None:
    mark = Marks("c")
    say(ada, "secret", mark)
    ada.erase(chat="secret", messages=3)
    sent = ada.chat("secret").prompt().messages
    assert not any(item.get("tool_calls") or item["role"] == "tool" for item in sent)


def test_an_export_keeps_title_and_archive_of_a_chat_whose_first_message_was_erased(ada: Memory) -> None:
    chat = ada.chat("monday")
    chat.append([Message("user", "first"), Message("user", "second")])
    chat.rename("Training")
    chat.archive()
    ada.erase(chat="monday", messages=1)
    out = io.StringIO()
    export_chats(ada, out)
    line = json.loads(out.getvalue())
    assert (line["content"], line.get("title"), line.get("archived")) == ("second", "Training", True)


def test_all_reads_agree_on_a_record_whose_newest_version_was_learned_in_an_erased_chat(ada: Memory) -> None:
    fact = ada.remember("Ada lives in Berlin", chat="monday", merge=False)
    ada.replace(fact.id, "Ada lives in Lisbon", chat="tuesday")
    ada.erase(chat="tuesday")
    listed = [one.text for one in ada.records()]
    assert [hit.text for hit in ada.recall("Ada lives")] == listed
    now = ada.get(fact.id)
    assert ([now.text] if now else []) == listed
    assert [one.text for one in ada.at(1).records()] == ["Ada lives in Berlin"]
    assert [hit.text for hit in ada.at(1).recall("Ada lives")] == ["Ada lives in Berlin"]


# Numbers go on


def test_the_number_of_an_erased_message_is_not_used_again(ada: Memory) -> None:
    chat = ada.chat("monday")
    chat.append([Message("user", "a"), Message("user", "b")])
    ada.erase(chat="monday", messages=2)
    assert chat.append(role="user", content="c").seq == 3
    ada.erase(chat="monday", messages=(1, 3))
    assert chat.stats().messages == 0
    assert chat.append(role="user", content="d").seq == 4
    assert ada.verify().problems == ()


def test_the_number_of_an_erased_version_is_not_used_again_by_its_user(ada: Memory) -> None:
    ada.remember(["first", "second"], "finding")
    ada.erase(user="ada")
    assert ada.version() == 2
    assert ada.remember("third", "finding").version == 3
    assert ada.verify().problems == ()


def test_an_earlier_version_does_not_show_messages_that_came_after_an_erasure(ada: Memory) -> None:
    ada.chat("monday").append([Message("user", f"marathon {n}") for n in range(5)])
    ada.remember("known", "finding")
    ada.erase(chat="monday", messages=(3, 5))
    ada.chat("tuesday").append(role="user", content="marathon of a later day")
    found = {hit.text for hit in ada.at(1).recall("marathon", sources=["message"])}
    assert found == {"marathon 0", "marathon 1"}


# Receipts


def test_a_receipt_tells_what_how_many_when_and_who_to_its_user(shared_location: str) -> None:
    clock = Clock(NOON)
    with Memory(shared_location, user="ada", admin=True, clock=clock) as memory:
        mark = Marks("r")
        fill(memory, "secret", mark)
        receipt = memory.erase(chat="secret", by="system")
        assert (receipt.what, receipt.by, receipt.at) == ("chat", "system", NOON)
        # The learned record has five versions, and the note of the ended run two.
        assert (
            dict(receipt.counts) | {"messages": 4, "records": 8, "versions": 5 + 8, "pads": 2}
            == receipt.counts
        )
        assert len(receipt.digest) == len(receipt.key) == 64
        (kept,) = erasures_of(memory)
        assert kept == replace(receipt, key=""), "who could read it could guess short words from the digest"
        assert receipt.key.encode() not in stored(shared_location)
        assert mark.left_in(repr(receipt)) == []
        one, two, _ = (record.id for record in memory.remember(["one", "two", "three"], "finding"))
        receipts = [receipt]
        some_more: list[dict[str, Any]] = [{"record": one}, {"record": two}, {"user": "ada"}]
        for what in some_more:
            clock.move(seconds=1)
            receipts.append(memory.erase(**what))
        assert [one.id for one in erasures_of(memory)] == [one.id for one in receipts]
        assert [one.by for one in erasures_of(memory)] == ["system", "user", "user", "user"]
        assert len({one.digest for one in receipts}) == len({one.key for one in receipts}) == 4
        assert erasures_of(memory.scoped(user="bob")) == []


# Proof


DAMAGE = {
    "a message of the same chat": "DELETE FROM messages WHERE chat = 'monday' AND seq = 2",
    "a whole chat": "DELETE FROM sessions WHERE chat = 'other'",
    "the newest version": "DELETE FROM records WHERE version = 6",
    "a receipt": "DELETE FROM erasures WHERE what = 'messages'",
}


@pytest.mark.slow
@pytest.mark.parametrize("sql", DAMAGE.values(), ids=DAMAGE.keys())
def test_real_damage_is_still_noticed_after_an_erasure(ada: Memory, shared_location: str, sql: str) -> None:
    ada.chat("monday").append([Message("user", f"message {n}") for n in range(8)])
    records = [ada.remember(f"finding {n}", "finding").id for n in range(5)]
    ada.erase(chat="monday", messages=(4, 5))
    ada.erase(chat="monday", messages=8)
    ada.erase(record=records[2])
    ada.chat("other").append([Message("user", f"other {n}") for n in range(4)])
    ada.chat("monday").append(role="user", content="more")
    ada.replace(records[3], "finding three")
    assert ada.verify().problems == ()
    damage(shared_location, sql)
    assert not ada.verify().ok
