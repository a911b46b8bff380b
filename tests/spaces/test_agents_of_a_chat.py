"""A chat that several agents write in: each of them finds all of it, and others nothing."""

from __future__ import annotations

import pytest

from holdfast import Memory


@pytest.fixture
def agents(memory: Memory) -> list[Memory]:
    """Triage opens the chat, billing goes on in it; names that hold each other's stay out of it."""
    names = ("triage", "billing", "bill", "billing\u2028triage", "")
    handles = [memory.scoped(user="ada", agent=name) for name in names]
    handles[0].chat("ticket").append(role="user", content="My invoice is wrong.")
    for _ in range(2):
        handles[1].chat("ticket").append(role="assistant", content="I refunded 40 euros to the card.")
    handles[2].chat("other").append(role="user", content="The invoice of the shop is settled.")
    return handles


def test_an_agent_finds_the_chat_in_which_it_wrote(agents: list[Memory]) -> None:
    seen = [
        [[chat.id for chat in agent.chats()], {hit.chat for hit in agent.recall("invoice refunded")}]
        for agent in agents
    ]
    both = {"ticket", "other"}
    ticket, other = [["ticket"], {"ticket"}], [["other"], {"other"}]
    assert seen == [ticket, ticket, other, [[], set()], [["other", "ticket"], both]]
    shown = [agent.chat("new").prompt(4_000, query="who was refunded?").recalled for agent in agents]
    assert [bool(hits) for hits in shown] == [True, True, False, False, True]
    assert agents[1].chats()[0].agent == "triage"


def test_it_finds_its_summaries_and_all_after_an_index_of_before(memory: Memory) -> None:
    opener, late, other = (memory.scoped(user="ada", agent=name) for name in ("triage", "billing", "shop"))
    chat = opener.chat("ticket")
    for n in range(60):
        chat.append(role="user", content=f"Invoice {n} of the shop is wrong by {n} euros, as it was before.")
    chat.compact(full=True, budget=400)
    assert late.recall("invoice", sources=["message"]) == late.recall("invoice", sources=["summary"]) == []
    late.chat("ticket").append(role="assistant", content="I refunded all of it.")
    assert late.recall("invoice shop", sources=["message"])
    assert late.recall("invoice shop", sources=["summary"]) == opener.recall(
        "invoice shop", sources=["summary"]
    )
    summary = late.recall("invoice shop", sources=["summary"])[0].id
    assert late.chat("new").expand(summary).children or late.chat("new").expand(summary).messages
    assert other.recall("invoice", sources=["message"]) == other.recall("invoice", sources=["summary"]) == []
