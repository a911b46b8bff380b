"""The provider contract: who satisfies it, what each capability requires, and what `Memory` has for it."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Chat, Conflict, Denied, InvalidInput, Memory, Message, ToolCall, View, Window, contract
from holdfast.contract import (
    CAPABILITIES,
    METHODS,
    Capability,
    Changes,
    CompactedChat,
    EndedChat,
    ExploredChat,
    KeptChat,
    Learns,
    Profile,
    PromptedChat,
    Provider,
    Reading,
    Recall,
    Records,
    ReviewedChat,
    Scopes,
    Scratchpads,
    SearchedChat,
    Session,
    Sessions,
    SnapshotChat,
    Versions,
    capabilities,
)
from holdfast.integrations.claude_agent import HoldfastSessionStore
from holdfast.integrations.mcp.server import make_server
from holdfast.integrations.openai_agents import HoldfastSession
from holdfast.integrations.pydantic_ai import Remembering
from holdfast.prompt.selector import selector
from holdfast.prompt.window import Compaction, LastN, Lossless
from holdfast.providers.null import NullChat, NullMemory
from holdfast.providers.tracing import traced
from holdfast.testing import MinimalProvider, check
from holdfast.tools.files import Files
from holdfast.types import ChatStats, Role
from stored_texts import text_of
from tables import each

# Memory and Chat satisfy all of it: mypy checks these assignments


def as_provider(memory: Memory) -> tuple[object, ...]:
    core: Provider = memory
    scopes: Scopes = memory
    recall: Recall = memory
    records: Records = memory
    profile: Profile = memory
    versions: Versions = memory
    changes: Changes = memory
    sessions: Sessions = memory
    learns: Learns = memory
    scratchpads: Scratchpads = memory
    return core, scopes, recall, records, profile, versions, changes, sessions, learns, scratchpads


def as_session(chat: Chat) -> tuple[object, ...]:
    core: Session = chat
    prompted: PromptedChat = chat
    compacted: CompactedChat = chat
    searched: SearchedChat = chat
    explored: ExploredChat = chat
    snapshots: SnapshotChat = chat
    kept: KeptChat = chat
    reviewed: ReviewedChat = chat
    ended: EndedChat = chat
    return core, prompted, compacted, searched, explored, snapshots, kept, reviewed, ended


def as_view(view: View) -> Reading:
    return view


def test_memory_has_every_capability(memory: Memory) -> None:
    assert capabilities(memory) == set(CAPABILITIES)
    assert set(as_provider(memory)) == {memory}
    assert len(set(as_session(memory.chat("a")))) == 1
    assert as_view(memory.at(0)).version() == 0


def test_looking_for_capabilities_stores_nothing(memory: Memory) -> None:
    capabilities(memory)
    assert memory.chats(archived=None) == []
    assert memory.changes() == []


def test_every_capability_has_methods() -> None:
    assert set(get_args(Capability)) == METHODS.keys()
    assert all(methods.provider or methods.chat for methods in METHODS.values())


# A capability is there if all of its methods are


class Core:
    """A provider with the core only."""

    name = "core"

    def chat(self, id: str, /) -> Session:
        return CoreChat(id)

    def close(self) -> None:
        pass


class CoreChat:
    def __init__(self, id: str) -> None:
        self.id = id

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        return list(messages)

    def window(self, budget: int = 8_000, *, tail: int | None = None) -> Window:
        return Window((), (), 0, budget, ())

    def stats(self) -> ChatStats:
        return ChatStats()


def test_the_core_has_no_capability() -> None:
    assert capabilities(Core()) == frozenset()


OF_PROVIDER = [(name, method) for name, methods in METHODS.items() for method in methods.provider]
OF_CHAT = [(name, method) for name, methods in METHODS.items() for method in methods.chat]


@each(("capability", "method"), OF_PROVIDER)
def test_a_capability_is_gone_without_a_method_of_the_provider(capability: Capability, method: str) -> None:
    without = type("Without", (NullMemory,), {method: None})()
    assert set(CAPABILITIES) - capabilities(without) == {capability}


@each(("capability", "method"), OF_CHAT)
def test_a_capability_is_gone_without_a_method_of_the_chats(capability: Capability, method: str) -> None:
    opened = type("WithoutChat", (NullChat,), {method: None})(NullMemory(), "a")

    class Without(NullMemory):
        def chat(self, id: str | None = None, **_: object) -> Chat:
            assert isinstance(opened, Chat)
            return opened

    assert set(CAPABILITIES) - capabilities(Without()) == {capability}


def test_the_example_is_true() -> None:
    assert doctest.testmod(contract) == (0, 2)


# What stands in every prompt, by names of its own


def test_a_memory_has_a_name(memory: Memory) -> None:
    assert memory.name == memory.scoped(user="bob").name == "holdfast"


def test_profile_and_soul_are_empty_at_first(memory: Memory) -> None:
    assert (
        text_of(memory.get("profile")),
        text_of(memory.get("soul")),
        memory.records(kind="constraint"),
    ) == ("", "", [])


def test_the_profile_is_what_was_written_last(memory: Memory) -> None:
    first = memory.remember("Runs.", "profile", expected_version=0)
    second = memory.remember("Runs and swims.", "profile", by="user", expected_version=first.version)
    assert text_of(memory.get("profile")) == "Runs and swims."
    assert (second.id, second.kind, second.by) == (first.id, "profile", "user")
    assert [one.text for one in memory.records(kind="profile")] == ["Runs and swims."]
    assert text_of(memory.get("soul")) == ""


def test_the_soul_is_what_was_written_last(memory: Memory) -> None:
    memory.remember("A coach.", "soul")
    memory.remember("A strict coach.", "soul")
    assert (text_of(memory.get("soul")), text_of(memory.get("profile"))) == ("A strict coach.", "")
    with pytest.raises(Denied):
        memory.remember("Somebody else.", "soul", by="reflect")
    assert text_of(memory.get("soul")) == "A strict coach."


@pytest.mark.parametrize("name", ["profile", "soul"])
def test_a_lost_race_changes_nothing(name: str, memory: Memory) -> None:
    seen = memory.remember("first", name)
    memory.remember("second", name, expected_version=seen.version)
    with pytest.raises(Conflict):
        memory.remember("third", name, expected_version=seen.version)
    with pytest.raises(InvalidInput):
        memory.remember("  ", name)
    assert text_of(memory.get(name)) == "second"


@pytest.mark.parametrize("name", ["profile", "soul"])
def test_an_agent_without_a_text_of_its_own_shows_the_one_of_no_agent(name: str, memory: Memory) -> None:
    coach = memory.scoped(agent="coach")
    memory.remember("of all", name)
    assert text_of(coach.get(name)) == "of all"
    coach.remember("of the coach", name)
    assert text_of(coach.get(name)) == "of the coach"
    assert text_of(memory.get(name)) == "of all"
    assert text_of(memory.scoped(agent="cook").get(name)) == "of all"
    assert text_of(memory.scoped(user="bob").get(name)) == ""


def test_constraints_are_the_users_word(memory: Memory) -> None:
    first = memory.remember("Never on Mondays", "constraint", by="user", chat="a")
    second = memory.remember("Never before six", "constraint", by="user")
    assert [one.id for one in memory.records(kind="constraint")] == [first.id, second.id]
    assert (first.kind, first.by, first.chat) == ("constraint", "user", "a")
    memory.retract(first.id, kind="constraint", by="user")
    assert [one.text for one in memory.records(kind="constraint")] == ["Never before six"]


def test_only_the_user_changes_constraints(memory: Memory) -> None:
    kept = memory.remember("Never on Mondays", "constraint", by="user")
    version = memory.version()
    with pytest.raises(Denied):
        memory.remember("Always on Mondays", "constraint")
    with pytest.raises(Denied):
        memory.retract(kept.id, kind="constraint")
    assert (memory.records(kind="constraint"), memory.version()) == ([kept], version)


def test_removing_what_is_no_constraint_counts_no_version(memory: Memory) -> None:
    fact = memory.remember("Runs on Tuesdays")
    version = memory.version()
    for unknown in ("rec_0", fact.id):
        with pytest.raises(InvalidInput):
            memory.retract(unknown, kind="constraint", by="user")
    assert memory.version() == version
    assert memory.records() == [fact]


def test_a_view_shows_what_stood_then(memory: Memory) -> None:
    memory.remember("Runs.", "profile")
    memory.remember("A coach.", "soul")
    memory.remember("Never on Mondays", "constraint", by="user")
    then = memory.version()
    memory.remember("Swims.", "profile")
    memory.remember("A trainer.", "soul")
    memory.remember("Never before six", "constraint", by="user")
    view = memory.at(then)
    assert (text_of(view.get("profile")), text_of(view.get("soul")), view.version()) == (
        "Runs.",
        "A coach.",
        then,
    )
    assert [one.text for one in view.records(kind="constraint")] == ["Never on Mondays"]
    empty = memory.at(0)
    assert (text_of(empty.get("profile")), text_of(empty.get("soul")), empty.records(kind="constraint")) == (
        "",
        "",
        [],
    )
    assert (text_of(memory.get("profile")), text_of(memory.get("soul"))) == ("Swims.", "A trainer.")


def test_a_view_of_a_time_shows_what_stood_then(memory: Memory) -> None:
    memory.remember("Runs.", "profile")
    assert text_of(memory.at(datetime(2000, 1, 1, tzinfo=UTC)).get("profile")) == ""


def test_a_chat_shows_at_once_what_is_written_in_it(memory: Memory) -> None:
    chat, other = memory.chat("a"), memory.chat("b")
    for one in (chat, other):
        one.append(role="user", content="Hello.")
        one.prompt()
    memory.remember("Runs in Berlin.", "profile", chat="a")
    memory.remember("Never on Mondays", "constraint", by="user", chat="a")
    assert "Runs in Berlin." in chat.prompt().system
    assert "Never on Mondays" in chat.prompt().system
    assert "Runs in Berlin." not in other.prompt().system


# The newest messages of a window, whatever they cost


def talk(chat: Chat, number: int) -> None:
    roles: tuple[Role, Role] = ("user", "assistant")
    chat.append([Message(roles[place % 2], f"Message {place}. " * 10) for place in range(number)])


def seqs(window: Window) -> list[int]:
    return [message.seq for message in window.messages]


@pytest.mark.parametrize(
    ("tail", "shown"), [(0, []), (1, [8]), (3, [6, 7, 8]), (8, [*range(1, 9)]), (99, [*range(1, 9)])]
)
def test_a_tail_is_there_without_any_budget(memory: Memory, tail: int, shown: list[int]) -> None:
    chat = memory.chat("a")
    talk(chat, 8)
    window = chat.window(0, tail=tail)
    assert seqs(window) == shown
    assert window.over_budget == bool(shown)
    assert sum(one.messages for one in window.omitted) == 8 - len(shown)


def test_a_tail_does_not_limit_what_fits(memory: Memory) -> None:
    chat = memory.chat("a")
    talk(chat, 8)
    assert seqs(chat.window(8_000, tail=2)) == [*range(1, 9)]


def test_without_a_tail_the_newest_message_is_there(memory: Memory) -> None:
    chat = memory.chat("a")
    talk(chat, 8)
    assert seqs(chat.window(0)) == [8]
    assert chat.window(100) == chat.window(policy=Lossless(100))


def test_a_tail_that_ends_in_a_tool_use_takes_all_of_it(memory: Memory) -> None:
    chat = memory.chat("a")
    chat.append(role="user", content="Which race?")
    chat.append(role="assistant", calls=[ToolCall("c1", "search")])
    chat.append(role="tool", content="Berlin", call_id="c1")
    assert seqs(chat.window(0, tail=1)) == [2, 3]


def test_summaries_stand_before_the_tail(memory: Memory) -> None:
    chat = memory.chat("a")
    talk(chat, 60)
    chat.compact(full=True, budget=1_500)
    window = chat.window(1_500, tail=3)
    assert window.summaries
    assert seqs(window)[-3:] == [58, 59, 60]
    assert seqs(chat.window(0, tail=3)) == [58, 59, 60]


@pytest.mark.parametrize("tail", [-1, 1.5, "3", True])
def test_a_tail_is_a_number_of_messages(memory: Memory, tail: int) -> None:
    with pytest.raises(InvalidInput):
        memory.chat("a").window(tail=tail)
    with pytest.raises(InvalidInput):
        Lossless(keep=tail)


def test_a_policy_has_a_tail_of_its_own(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="tail"):
        memory.chat("a").window(tail=3, policy=LastN(3))


Piece = tuple[str, int]  # "say", or a "use" of a tool with its result; and tokens
PIECES = st.lists(st.tuples(st.sampled_from(["say", "use"]), st.integers(1, 30)), max_size=12)


def log_of(pieces: Sequence[Piece]) -> list[Message]:
    """Make a log whose tool uses are all whole."""
    log: list[Message] = []
    for kind, tokens in pieces:
        seq = len(log) + 1
        if kind == "say":
            log.append(Message("user", "x", seq=seq, tokens=tokens))
            continue
        name = f"call_{seq}"
        log.append(Message("assistant", calls=(ToolCall(name, "search"),), seq=seq, tokens=tokens))
        log.append(Message("tool", "r", call_id=name, answers=(name,), seq=seq + 1, tokens=tokens))
    return log


def group_of(message: Message) -> str:
    return (
        (message.calls[0].id if message.calls else "") or "".join(message.answers) or f"alone {message.seq}"
    )


@given(PIECES, st.integers(0, 200), st.integers(0, 8), st.integers(0, 3))
def test_the_tail_is_there_pairs_are_whole_and_the_budget_holds(
    pieces: list[Piece], budget: int, tail: int, turns: int
) -> None:
    log = log_of(pieces)
    stats = ChatStats(len(log), sum(message.tokens for message in log))
    policy = Lossless(budget, Compaction(turns=turns), keep=tail)
    window = selector(policy, reversed(log), stats)(policy.budget)
    kept = list(window.messages)
    assert kept == log[len(log) - len(kept) :]
    assert len(kept) >= min(tail, len(log))
    left_out = {group_of(message) for message in log[: len(log) - len(kept)]}
    assert left_out.isdisjoint(group_of(message) for message in kept)
    guaranteed = {group_of(message) for message in log[max(0, len(log) - tail) :]}
    beyond = [message for message in kept if group_of(message) not in guaranteed]
    assert window.tokens == sum(message.tokens for message in kept)
    assert window.tokens <= budget or not beyond
    assert sum(one.messages for one in window.omitted) == len(log) - len(kept)
    if budget == tail == 0:
        assert kept == []


@each(
    "wrong",
    [
        lambda: capabilities("agent.db"),  # type: ignore[arg-type]  # the mistake
        lambda: capabilities(MinimalProvider),  # type: ignore[arg-type]  # as above
        lambda: traced("agent.db", on_event=print),  # type: ignore[type-var]  # as above
        lambda: check(MinimalProvider()),  # type: ignore[arg-type]  # as above
        lambda: check(lambda: "agent.db"),  # type: ignore[arg-type,return-value]  # as above
        lambda: make_server("agent.db"),  # type: ignore[arg-type]  # as above
        lambda: Files("agent.db"),  # type: ignore[arg-type]  # as above
        lambda: HoldfastSession("agent.db", "monday"),  # type: ignore[arg-type]  # as above
        lambda: HoldfastSessionStore("agent.db"),  # type: ignore[arg-type]  # as above
        lambda: Remembering(Memory(":memory:")),  # type: ignore[arg-type]  # as above
    ],
)
def test_what_is_no_memory_is_refused_at_once(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        wrong()
