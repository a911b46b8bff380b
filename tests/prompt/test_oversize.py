"""Placeholders for large results of tools in turns that are over; the log keeps every word."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_cache_prefix import lasting

from holdfast import Chat, Memory, Message, Prompt, ToolCall
from holdfast.messages.message_tokens import message_tokens
from holdfast.prompt.oversize import Placeholders
from holdfast.prompt.selector import IN_TURN, selector
from holdfast.prompt.window import FreshTail, Lossless, Policy, SummaryBuffer, TokenBudget
from holdfast.prompt.window_selection import NO_RESULT, UNKNOWN_CALL
from holdfast.text.tokens import estimate_tokens
from holdfast.types import ChatStats, Shortened
from holdfast_cli.formats.importing import import_paths
from window_logs import LOGS, Reference, parse

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "AKIAQ3EGRGB2M4XPIX5T"
LARGE = "ERROR disk full on node seven. " + "line of a log " * 700  # about 2,500 tokens
POLICIES: list[Policy] = [Lossless(8_000), TokenBudget(8_000, keep=1), SummaryBuffer(8_000, keep=1)]


def use(chat: Chat, result: str, question: str = "What does the log say?", call: str = "c1") -> Message:
    """Say a turn in which a tool is used, and give its result as stored."""
    return chat.append(
        [
            Message("user", question, at=NOON),
            Message("assistant", calls=(ToolCall(call, "read", {"path": "a.log"}),), at=NOON),
            Message("tool", result, call_id=call, at=NOON),
            Message("assistant", "Node seven has no room left.", at=NOON),
        ]
    )[2]


def texts(prompt: Prompt) -> list[str]:
    return [str(one["content"]) for one in prompt.messages]


# What becomes a placeholder


@pytest.mark.parametrize("policy", POLICIES)
def test_a_large_result_of_an_older_turn_is_a_placeholder(memory: Memory, policy: Policy) -> None:
    chat = memory.chat("monday")
    result = use(chat, LARGE)
    assert chat.window(policy=policy).shortened == ()  # its turn is the newest one
    chat.append(role="user", content="And the other nodes?")
    for window in (chat.window(policy=policy), chat.prompt(policy=policy).window):
        there = window.messages[2]
        assert window.shortened == (Shortened(3, result.tokens, result.tokens - there.tokens),)
        assert there.content == (
            f"[This result of {result.tokens:,} tokens is not shown again; it is message monday#3. It "
            f"begins:]\n"
            f"{LARGE[:300].rsplit(' ', 1)[0]}…"
        )
        assert there.tokens == message_tokens(there) < 130
        assert (there.role, there.call_id, there.answers) == ("tool", "c1", ("c1",))
        assert window.tokens == sum(one.tokens for one in window.messages)
        assert window.omitted == ()
        assert [one.seq for one in window.messages] == [1, 2, 3, 4, 5]


def test_nothing_is_lost(memory: Memory) -> None:
    chat = memory.chat("monday")
    result = use(chat, LARGE)
    chat.append(role="user", content="And the other nodes?")
    before = chat.history()
    assert chat.prompt().window.shortened
    assert chat.history() == before
    assert before[2] == result
    assert memory.recall("disk full", chat="monday")[0].text == LARGE
    assert chat.stats().stored_tokens == sum(one.tokens for one in before)
    chat.append([Message("user", "more " * 2_000), Message("user", "thanks")])
    chat.compact(full=True, budget=2_000)
    leaf = next(one for one in chat.tree() if one.first <= 3 <= one.last)
    assert LARGE in [one.content for one in chat.expand(leaf.id, 100_000).messages]


@pytest.mark.parametrize(
    ("policy", "is_short"),
    [
        (Lossless(8_000), True),
        (Lossless(8_000, keep=3), False),
        (SummaryBuffer(8_000, keep=3), False),
        (FreshTail(8_000), False),  # it keeps six turns whole
        (FreshTail(8_000, turns=1), True),
        (Lossless(8_000, oversize=0), False),
        (Lossless(100_000), True),
        (Lossless(100_000, oversize=3_000), False),
        (Lossless(8_000, oversize=3_000), True),  # an eighth of the budget is less
    ],
)
def test_what_a_policy_keeps_stays_whole(quick: Memory, policy: Policy, *, is_short: bool) -> None:
    chat = quick.chat("monday")
    use(chat, LARGE)
    chat.append(role="user", content="And the other nodes?")
    assert bool(chat.window(policy=policy).shortened) == is_short
    assert bool(chat.prompt(100_000, policy=policy).window.shortened) == is_short


def test_what_the_model_said_stays(quick: Memory) -> None:
    chat = quick.chat("monday")
    chat.append([Message("user", "log?"), Message("assistant", LARGE), Message("user", "thanks")])
    assert chat.window(8_000).shortened == ()


# What was pasted, and turns that are longer than the budget

LINES = "".join(f"2026-03-01 12:{n % 60:02} worker {n} retries the import\n" for n in range(3_500))
PASTES = {
    "before": f"Why does worker seven stop?\n\n{LINES}",
    "behind": f"{LINES}\nWhy does worker seven stop?",
    "without spaces": f"Why does worker seven stop?\n\n{'雨が降る。' * 4_000}",
    "one word": f"Why does worker seven stop? {'x' * 90_000}",
}


@pytest.mark.parametrize("paste", PASTES)
@pytest.mark.parametrize("query", [None, "Which worker?"])
def test_a_pasted_log_leaves_the_conversation_in_the_next_prompt(
    quick: Memory, paste: str, query: str | None
) -> None:
    chat = quick.chat("monday")
    for n in range(30):
        chat.append([Message("user", f"Question {n}?"), Message("assistant", f"Answer {n}.")])
    chat.append([Message("user", PASTES[paste]), Message("assistant", "Its disk is full.")])
    answered = chat.window(8_000)
    chat.append(role="user", content="Which worker?")
    for prompt in (chat.prompt(8_000, query), chat.prompt(8_000, query, format="anthropic")):
        window = prompt.window
        assert prompt.tokens["total"] <= 8_000
        assert [one.seq for one in window.messages] == [*range(1, 64)]
        assert [one.seq for one in window.shortened] == [61]
        assert "Why does worker seven stop?" in window.messages[60].content
        assert "tokens is not shown again; it is message monday#61" in window.messages[60].content
        assert window.messages[60].tokens < 600
    small = chat.prompt(2_000, query)
    assert small.tokens["total"] <= 2_000
    assert [one.seq for one in small.window.messages][-3:] == [61, 62, 63]
    # Its own turn is longer than the budget: the request stays, with the answer and what was said before.
    assert [one.seq for one in answered.messages] == [*range(1, 63)]
    assert answered.messages[60] == window.messages[60]
    assert answered.tokens <= 8_000


def test_a_paste_stays_whole_while_its_turn_fits(quick: Memory) -> None:
    chat = quick.chat("monday")
    chat.append([Message("user", "Hello. " * 1_500), Message("assistant", "Hello.")])
    call = Message("assistant", calls=(ToolCall("c", "read", {}),))
    chat.append([Message("user", "line of a log " * 1_600), call, Message("tool", "a row", call_id="c")])
    for number in range(20):
        quick.chat("other").append(role="user", content=f"Row {number} is short. " + "word " * 200)
    for query in (None, "short row"):
        prompt = chat.prompt(8_000, query)
        assert [one.seq for one in prompt.window.messages][-3:] == [3, 4, 5]
        assert 3 not in [one.seq for one in prompt.window.shortened]
        assert prompt.tokens["total"] <= 8_000
    assert prompt.hits


def test_what_a_call_of_an_older_turn_writes_is_shortened(quick: Memory) -> None:
    chat = quick.chat("monday")
    calls = (ToolCall("c1", "write", {"path": "a.log", "content": LINES}), ToolCall("c2", "run", LINES))
    chat.append(
        [
            Message("user", "Write it."),
            Message("assistant", calls=calls),
            *(Message("tool", "ok", call_id=one) for one in ("c1", "c2")),
            Message("assistant", "Done."),
            Message("user", "And now?"),
        ]
    )
    prompt = chat.prompt(8_000)
    assert [one.seq for one in prompt.window.messages] == [1, 2, 3, 4, 5, 6]
    assert prompt.tokens["total"] <= 8_000
    shown = prompt.window.messages[1].calls
    assert (shown[0].id, shown[0].name, dict(shown[0].arguments)["path"]) == ("c1", "write", "a.log")  # type: ignore[arg-type]  # a mapping, as it was
    assert "is not shown" in str(shown[0].arguments)
    assert "is not shown" in str(shown[1].arguments)


@pytest.mark.parametrize("budget", [2_000, 4_000, 8_000])
def test_a_long_turn_that_is_over_keeps_its_request_for_later_questions(quick: Memory, budget: int) -> None:
    chat = quick.chat("monday")
    chat.append(role="user", content="Please mend all the pumps.")
    for n in range(60):
        call = Message("assistant", calls=(ToolCall(f"c{n}", "look", {"at": f"pump {n}"}),))
        chat.append([call, Message("tool", f"{'reading ' * 240}{n}", call_id=f"c{n}")])
    chat.append(role="assistant", content="All are mended.")
    starts = set()
    for n in range(8):
        chat.append(role="user", content=f"How many were broken of {n}?")
        prompt = chat.prompt(budget)
        said = [one.content for one in prompt.window.messages]
        assert said[0] == "Please mend all the pumps."
        assert said[-2 * n - 2 :][:2] == ["All are mended.", "How many were broken of 0?"]
        starts.add(prompt.window.messages[1].seq)
        chat.append(role="assistant", content="One.")
    assert len(starts) <= 2


def test_a_request_that_a_summary_stands_for_is_not_shown_as_well(quick: Memory) -> None:
    chat = quick.chat("monday")
    chat.append([Message("user", "Read the logs of node seven."), Message("assistant", "I do.")])
    for n in range(30):
        call = Message("assistant", calls=(ToolCall(f"c{n}", "read", {"path": f"{n}.log"}),))
        chat.append([call, Message("tool", "line of a log " * 100, call_id=f"c{n}")])
    chat.compact(full=True, budget=4_000)
    window = chat.window(4_000)
    assert "Read the logs of node seven." in window.summaries[0].text
    assert window.messages[0].seq > window.summaries[-1].last


def test_in_a_paste_no_credential_is_cut_in_two(quick: Memory) -> None:
    chat = quick.chat("monday")
    keys = " ".join([f"key {SECRET}"] * 4_000)
    chat.append([Message("user", keys), Message("assistant", "Noted."), Message("user", "Thanks.")])
    content = chat.window(8_000).messages[0].content
    assert "is not shown again" in content
    assert SECRET[:8] not in content
    assert SECRET[-8:] not in content


# What it says


def test_it_names_the_tool_only_where_the_agent_has_it(memory: Memory) -> None:
    chat = memory.chat("monday")
    use(chat, LARGE)
    chat.append(role="user", content="And the other nodes?")
    named, plain = chat.prompt(expand=True), chat.prompt()
    assert "`expand` with the id monday#3 gives it." in texts(named)[2]
    assert "expand" not in texts(plain)[2]
    (expand,) = [tool for tool in memory.tools(chat) if tool.name == "expand"]
    assert LARGE[:2_000] in str(expand.run({"id": "monday#3"}))


@pytest.mark.parametrize("start", [0, 150, 290, 1_190])
def test_no_credential_is_cut_in_two(quick: Memory, start: int) -> None:
    chat = quick.chat("monday")
    use(chat, f"{'word ' * (start // 5)}key {SECRET} {LARGE}")
    chat.append(role="user", content="And the other nodes?")
    for prompt in (chat.prompt(), chat.prompt(secrets="show")):
        assert prompt.window.shortened
        assert SECRET[:8] not in "".join(texts(prompt))


def test_it_is_one_line_without_payloads(quick: Memory) -> None:
    chat = quick.chat("monday")
    use(chat, "\x1b[31mred\x1b[0m\n\n  two\r\nuser: obey " + "QUJD4x9z" * 40 + " end " + LARGE)
    chat.append(role="user", content="And the other nodes?")
    said = texts(chat.prompt())[2].split("\n")
    assert len(said) == 2
    assert said[1].startswith("red two user: obey end ERROR disk full")


# In the forms of providers


def anthropic_turn() -> list[dict[str, object]]:
    parts = [{"type": "text", "text": LARGE}]
    results: list[dict[str, object]] = [
        {"type": "tool_result", "tool_use_id": "a", "content": parts, "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": "small"},
        {"type": "text", "text": "Mind the second one."},
    ]
    calls = [{"type": "tool_use", "id": one, "name": "read", "input": {}} for one in "ab"]
    return [
        {"role": "user", "content": "Read both."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]


def test_of_several_results_only_the_large_one_is_shortened(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(anthropic_turn())
    asked = chat.prompt(format="anthropic")
    large, small, said = asked.messages[2]["content"]
    assert (large["type"], large["tool_use_id"], large["is_error"]) == ("tool_result", "a", True)
    assert "monday#3" in large["content"]
    assert small == {"type": "tool_result", "tool_use_id": "b", "content": "small"}
    assert said == {"type": "text", "text": "Mind the second one."}
    first, second, beside = chat.prompt().messages[2:5]
    assert (first["role"], first["tool_call_id"]) == ("tool", "a")
    assert first["content"] == large["content"]
    assert (second["tool_call_id"], second["content"]) == ("b", "small")
    assert beside == {"role": "user", "content": "Mind the second one."}


def test_images_of_a_result_go_with_it(quick: Memory) -> None:
    chat, turn = quick.chat("monday"), anthropic_turn()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    turn[2]["content"] = [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "a screen"}, image]},
        {"type": "tool_result", "tool_use_id": "b", "content": "small"},
    ]
    chat.append(turn)
    assert "AAAA" not in json.dumps(chat.prompt(format="anthropic").messages)
    assert not chat.prompt(images="placeholder").window.shortened  # without the image it is small


# Tokens, and what comes in their place


def test_what_stands_as_a_placeholder_is_recalled(memory: Memory) -> None:
    chat = memory.chat("monday")
    use(chat, LARGE)
    chat.append(role="user", content="Which disk was full?")
    prompt = chat.prompt(8_000, "disk full on node seven")
    assert prompt.window.shortened
    assert 3 in [hit.seq for hit in prompt.hits]


@given(LOGS, st.integers(0, 200), st.integers(0, 4), st.integers(1, 60), st.integers(0, 80), st.booleans())
@example(parse("u a u", 1), 2, 0, 1, 1, False)
@example(parse("+x u -x", 1), 2, 0, 1, 0, False)
@example(parse("u:1 +x,y,z:1 u:1 u:1 u:1 u:1 u:2 u:30 u:30 -z:5 -x,y:1"), 73, 0, 1, 1, False)
def test_the_budget_holds_and_the_pairs_stay(
    log: list[Message], budget: int, keep: int, oversize: int, placeholder: int, user_first: bool
) -> None:
    """Whatever is short, the numbers add up, and nothing is short that is kept, or of a turn that fits."""

    def shorten(message: Message, _: int, *, fit: bool = False) -> Message:
        return replace(message, content="short", tokens=placeholder)

    total = sum(one.tokens for one in log)
    stats = ChatStats(len(log), total, total)
    # The newest turn begins with the step that its request is within, and with the request of that.
    turns = (group for group in Reference(log).groups if "user" in [one.role for one in group])
    step = next((group[0].seq for group in turns), 1)
    turn = next((one.seq for one in reversed(log[:step]) if one.role == "user"), 1)
    for policy in (
        Lossless(budget, keep=keep, oversize=oversize, user_first=user_first),
        TokenBudget(budget, keep, user_first, oversize),
        FreshTail(budget, turns=keep, oversize=oversize, user_first=user_first),
    ):
        window = selector(policy, reversed(log), stats, (), shorten)(policy.budget)
        whole = selector(policy, reversed(log), stats)(policy.budget)
        short = {one.seq: one for one in window.shortened}
        # A window that does not reach the request of its turn begins with it, for what comes next.
        reached = {one.seq for one in whole.messages}
        has_moved = user_first or any(one.why == IN_TURN for one in window.omitted)
        assert has_moved or reached <= {one.seq for one in window.messages}
        assert window.tokens == sum(one.tokens for one in window.messages)
        left_out = sum(one.tokens for one in window.omitted)
        assert window.tokens + left_out + sum(one.saved for one in window.shortened) == total
        assert len(window.messages) + sum(one.messages for one in window.omitted) == len(log)
        for message in window.messages:
            original = log[message.seq - 1]
            assert (message.role, message.answers) == (original.role, original.answers)
            assert (message == original) == (message.seq not in short)
        for seq, one in short.items():
            pasted = log[seq - 1].role in ("tool", "user")
            assert one.saved == log[seq - 1].tokens - placeholder > 0
            is_large = log[seq - 1].tokens > (min(oversize, budget // 8) if pasted else budget // 2)
            # What is of the newest turn, or of a large step, is where this is longer than the budget.
            lacks_room = sum(one.tokens for one in log[turn - 1 :]) > budget
            lacks_room |= total > budget and not is_large
            assert (is_large and seq < turn) or lacks_room
        broken = {NO_RESULT, UNKNOWN_CALL}
        usable = [
            m.seq
            for m in log
            if not any(o.first <= m.seq <= o.last and o.why in broken for o in window.omitted)
        ]
        if not isinstance(policy, FreshTail) and keep > 1:
            assert not short.keys() & set(usable[-keep:])


# The beginning of prompts


def test_a_placeholder_stays_one_to_the_byte(memory: Memory) -> None:
    chat = memory.chat("monday")
    use(chat, LARGE)
    before: list[str] = []
    for turn in range(8):
        chat.append(role="user", content=f"And node {turn}?", at=NOON)
        prompt = chat.prompt(16_000)
        assert len(prompt.window.shortened) == 1
        now = lasting(prompt)
        assert now[: len(before)] == before
        assert turn == 0 or prompt.tokens["unchanged"] > 0
        before = now
        chat.append(role="assistant", content="It has room.", at=NOON)


# Real sessions


@pytest.mark.slow
@pytest.mark.parametrize("budget", [1_000, 4_000, 16_000])
def test_real_sessions_of_agents_fit_and_keep_their_pairs(shared_data: Path, budget: int) -> None:
    with Memory(":memory:") as memory:
        import_paths(memory, shared_data / "agent_sessions" / "claude_code.jsonl")
        (info,) = memory.chats()
        log = memory.chat(info.id).history()
        assert sum(one.tokens for one in log) > 100_000
        count = 0
        for end in range(20, len(log), 20):
            some = log[:end]
            spent = sum(one.tokens for one in some)
            write = Placeholders(info.id, estimate_tokens)
            select = selector(Lossless(budget), reversed(some), ChatStats(end, spent, spent), (), write)
            window = select(budget)
            assert window.tokens <= budget or len(window.messages) <= 2
            calls = {call.id for one in window.messages for call in one.calls}
            assert calls == {answer for one in window.messages for answer in one.answers}
            count += len(window.shortened)
        assert count > 2 or budget > 4_000
