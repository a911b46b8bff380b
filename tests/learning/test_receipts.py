"""What a prompt was made of is stored: who appends the answer, in any process, knows what it was shown."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pytest

from holdfast import Memory
from holdfast.prompt.window import Lossless
from holdfast.types import Receipt
from learning_scripts import hold, texts

TOLD = "Remember that I live in Lisbon, in the Rua das Flores, with my sister Ines."
QUESTION = "Where do I live, and with whom?"
ANSWER = "As you mentioned before, you live in Lisbon, in the Rua das Flores, with your sister Ines."

Reopen = Callable[[], Memory]


def asked(memory: Memory) -> None:
    """Tell something in one session, and ask for it in another."""
    hold(memory, "before", [TOLD, "Thank you."])
    memory.chat("home").append(role="user", content=QUESTION)


@pytest.mark.parametrize("prompted", [True, False])
def test_what_a_prompt_showed_elsewhere_is_not_learned(reopen: Reopen, prompted: bool) -> None:
    memory, other, third = reopen(), reopen(), reopen()
    asked(memory)
    key = memory.remember("The key of the shed is under the third blue flower pot", "finding")
    question = f"{QUESTION} And where is the key of the shed?"
    hits = other.chat("home").prompt(700, question).hits if prompted else ()
    shown = [hit.id if hit.kind else f"{hit.chat}#{hit.seq}" for hit in hits]
    assert ({"before#1", key.id} <= set(shown)) is prompted
    answer = f"{ANSWER} We decided that the key of the shed is under the third blue flower pot."
    assert list(third.chat("home").append(role="assistant", content=answer).shown) == shown
    memory.chat("home").extract()
    assert (texts(memory) == [key.text]) is prompted
    assert [list(receipt.hits) for receipt in memory.chat("home").receipts()] == ([shown] if prompted else [])


def test_what_several_workers_showed_counts_together(reopen: Reopen) -> None:
    one, other, third = reopen(), reopen(), reopen()
    hold(one, "before", [TOLD, "Thank you.", "We open the shop at 9:30 on Saturdays."])
    one.chat("home").append(role="user", content=QUESTION)
    first = one.chat("home").prompt(700, "Lisbon Flores", limit=1).hits
    second = other.chat("home").prompt(700, "shop Saturdays", limit=1).hits
    assert {hit.seq for hit in first}.isdisjoint(hit.seq for hit in second)
    answer = third.chat("home").append(role="assistant", content=ANSWER)
    assert set(answer.shown) >= {f"before#{hit.seq}" for hit in (*first, *second)}
    assert [one.hits for one in third.chat("home").receipts()] == [
        tuple(f"before#{hit.seq}" for hit in second)
    ]


def test_a_receipt_says_what_the_prompt_was_made_of(memory: Memory) -> None:
    asked(memory)
    memory.remember("Likes tea")
    chat = memory.chat("home")
    prompt = chat.prompt(700, QUESTION, system="Be brief.", policy=Lossless(500))
    assert chat.receipts() == []
    answer = chat.append(role="assistant", content="Lisbon.")
    (receipt,) = chat.receipts()
    assert isinstance(receipt, Receipt)
    assert (receipt.seq, receipt.version, receipt.shared, receipt.budget) == (answer.seq, 1, 0, 700)
    assert (receipt.policy, receipt.parameters["budget"]) == ("Lossless", 500)
    assert receipt.system == sha256(b"Be brief.").hexdigest()
    assert receipt.query == sha256(QUESTION.encode()).hexdigest()
    assert receipt.summaries == ()
    assert receipt.hits == answer.shown
    assert len(receipt.hits) == len(prompt.hits) > 0
    assert chat.receipts(0) == []


def test_the_summaries_that_a_prompt_showed_are_named(memory: Memory) -> None:
    chat = hold(memory, "long", [f"Message {n} about the harbour and its ships. " * 12 for n in range(60)])
    chat.compact(budget=2_000)
    prompt = chat.prompt(2_000)
    chat.append(role="assistant", content="Yes.")
    assert chat.receipts()[-1].summaries == tuple(one.id for one in prompt.window.summaries) != ()


def test_a_prompt_of_a_chat_that_does_not_exist_writes_nothing_and_has_its_receipt_with_the_answer(
    memory: Memory,
) -> None:
    hold(memory, "before", [TOLD, "Thank you."])
    chat = memory.chat("new")
    chat.prompt(700, QUESTION)
    assert [info.id for info in memory.chats()] == ["before"]
    _, answer = chat.append([{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}])
    assert "before#1" in answer.shown
    (receipt,) = chat.receipts()
    assert (receipt.seq, receipt.hits) == (2, answer.shown)
    chat.append(role="assistant", content="And more.")
    assert chat.receipts() == [receipt]


def test_receipts_are_kept_for_the_newest_messages(memory: Memory) -> None:
    chat = memory.chat("home")
    chat.append([{"role": "user", "content": f"Message {n}"} for n in range(10)])
    chat.prompt()
    chat.append(role="assistant", content="First.")
    chat.append([{"role": "user", "content": f"Message {n}"} for n in range(1_998)])
    chat.prompt()
    chat.append(role="assistant", content="Second.")
    assert [receipt.seq for receipt in chat.receipts()] == [11, 2_010]
    chat.append(role="user", content="One more.")
    chat.prompt()
    chat.append(role="assistant", content="Third.")
    assert [receipt.seq for receipt in chat.receipts()] == [2_010, 2_012]


def test_prompts_that_nobody_answers_do_not_pile_up(reopen: Reopen) -> None:
    asked(reopen())
    workers = [reopen() for _ in range(20)]
    for memory in workers:
        for _ in range(2):
            memory.chat("home").prompt(700)
    assert waiting(workers[0]) == 16


def waiting(memory: Memory) -> int:
    with memory._runtime.database.reading() as connection:
        sql = "SELECT count(*) FROM receipts WHERE space = :space AND seq = 0"
        return int(connection.all(sql, space=memory.scope.space)[0][0])


def test_what_is_written_after_a_prompt_waits_for_the_disk_again(
    reopen: Reopen, shared_location: str
) -> None:
    memory = reopen()
    asked(memory)
    memory.chat("home").prompt(700, QUESTION)
    on_server = shared_location.startswith("postgres")
    with memory._runtime.database.writing() as tx:
        assert tx.all("SHOW synchronous_commit" if on_server else "PRAGMA synchronous") == [
            ("on",) if on_server else (2,)
        ]


# Erasure


def test_receipts_go_with_their_chat(memory: Memory) -> None:
    asked(memory)
    chat = memory.chat("home")
    chat.prompt(700, QUESTION)
    chat.append(role="assistant", content="Lisbon.")
    chat.prompt(700, QUESTION)
    assert memory.erase(chat="home").counts["receipts"] == 2
    assert (chat.receipts(), waiting(memory)) == ([], 0)
    chat.append(role="user", content="Hello.")
    assert chat.append(role="assistant", content="Hello.").shown == ()
    assert chat.receipts() == []
    chat.prompt(700, QUESTION)
    chat.append(role="assistant", content="Lisbon.")
    memory.erase(user="ada")
    assert chat.receipts() == [], "an erased user has none"


def test_names_of_what_is_erased_go_from_all_that_was_shown(memory: Memory) -> None:
    asked(memory)
    fact = memory.remember("Ines lives in Lisbon and sells flowers", "finding")
    chat = memory.chat("home")
    chat.prompt(700, "Ines Lisbon Flores")
    chat.append(role="assistant", content="Lisbon.")
    assert {"before#1", fact.id} <= set(chat.receipts()[0].hits)
    memory.erase(chat="before", messages=1)
    memory.erase(record=fact.id)
    assert {"before#1", fact.id}.isdisjoint(chat.receipts()[0].hits)
    assert {"before#1", fact.id}.isdisjoint(chat.history(1)[0].shown)
    assert memory.verify().problems == ()


def test_receipts_of_erased_answers_and_digests_of_erased_questions_go(memory: Memory) -> None:
    asked(memory)
    chat = memory.chat("home")
    for n in range(3):
        chat.prompt(700, QUESTION)
        chat.append(role="assistant", content=f"Answer {n}.")
        chat.append(role="user", content=QUESTION)
    chat.prompt(700, QUESTION)
    memory.erase(chat="home", messages=(2, 3))
    assert [(receipt.seq, receipt.query != "") for receipt in chat.receipts()] == [(4, False), (6, True)]
    chat.append(role="assistant", content="The last.")
    assert chat.receipts(1)[0].query == ""
