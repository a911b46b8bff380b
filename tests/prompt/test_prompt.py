from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html import escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chat_messages import to_chat
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.openai import to_openai
from holdfast.prompt.build import PromptOptions, build
from holdfast.prompt.selector import selector
from holdfast.prompt.summary_block import summary_text
from holdfast.prompt.window import CheckedPolicy, FreshTail, Lossless, TokenBudget
from holdfast.text.tokens import CountTokens, estimate_tokens
from holdfast.types import ChatStats, Hit, Message, Prompt, Summary, Why, Window
from tables import each
from window_logs import LOGS, make, parse, window_of

WHEN = datetime(2026, 5, 8, 13, 56, 12, tzinfo=UTC)


def hit(text: str, seq: int = 1, chat: str = "here", **fields: object) -> Hit:
    base = Hit("message", text, 0.5, id="", chat=chat, seq=seq, role="user", name=None, at=WHEN, why=Why({}))
    return replace(base, **fields)  # type: ignore[arg-type]


def ask(
    log: list[Message],
    hits: list[Hit],
    budget: int = 8_000,
    policy: CheckedPolicy | None = None,
    *,
    system: str = "",
    count: CountTokens = estimate_tokens,
) -> Prompt:
    tokens = sum(message.tokens for message in log)
    select = selector(policy or FreshTail(budget), reversed(log), ChatStats(len(log), tokens, tokens))
    return build(select, hits, chat="here", budget=budget, options=PromptOptions(system), count=count)


def recalled(prompt: Prompt) -> str:
    """Give the message that holds what was recalled; "" if there is none."""
    found = [one for one in prompt.messages if str(one["content"]).startswith("<recalled>")]
    assert len(found) <= 1
    assert all(one["role"] == "user" for one in found)
    return str(found[0]["content"]) if found else ""


def entries(prompt: Prompt) -> list[str]:
    lines = recalled(prompt).split("\n")
    assert (lines[0], lines[-1]) == ("<recalled>", "</recalled>")
    return lines[2:-1]


def seqs(prompt: Prompt) -> list[int]:
    return [message.seq for message in prompt.window.messages]


def test_without_hits_there_is_no_block() -> None:
    prompt = ask(parse("u a u"), [])
    assert prompt.system == ""
    assert prompt.messages == [{"role": r, "content": r} for r in ("user", "assistant", "user")]
    assert prompt.tokens == {
        "system": 0,
        "known": 0,
        "recalled": 0,
        "window": 30,
        "total": 30,
        "unchanged": 0,
        "budget": 8_000,
        "room": 8_000,
        "free": 7_970,
        "over": 0,
    }
    assert ask(parse("u"), [], system="Be brief.").system == "Be brief."


def test_recalled_turns_are_dated_named_and_in_order_of_time() -> None:
    hits = [
        hit("Later.", 1, at=WHEN + timedelta(days=1), name="ada"),
        hit("Berlin it is.", 3, chat="trips", role="assistant"),
        hit("Two\nlines", 2),
        *(hit(f"After {n}.", n, at=WHEN + timedelta(minutes=n)) for n in (59, 60)),
    ]
    prompt = ask([], hits, system="You are a coach.")
    assert prompt.system == "You are a coach."
    assert "not instructions" in recalled(prompt)
    assert entries(prompt) == [
        "[2026-05-08 13:56]",
        "- user: Two",
        "  lines",
        "- user: After 59.",
        "[2026-05-08 13:56, chat trips]",
        "- assistant: Berlin it is.",
        "[2026-05-08 14:56]",
        "- user: After 60.",
        "[2026-05-09 13:56]",
        "- ada: Later.",
    ]
    assert prompt.hits == tuple(hits)


def test_the_zone_of_local_times_is_named_once() -> None:
    local = WHEN.astimezone(timezone(timedelta(hours=9)))
    prompt = ask([], [hit("Berlin it is.", 1, at=local), hit("And Rome.", 2, at=local + timedelta(hours=2))])
    assert entries(prompt)[::2] == ["[2026-05-08 22:56]", "[2026-05-09 00:56]"]
    assert recalled(prompt).count("Times are those of UTC+09:00.") == 1
    assert "Times are" not in recalled(ask([], [hit("Berlin it is.")]))


@given(st.text(min_size=1, max_size=600), st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_the_frame_holds_whatever_is_said(text: str, name: str, chat: str) -> None:
    prompt = ask([], [hit(text, 7, chat=chat, name=name), hit("end", 8, at=WHEN + timedelta(days=1))])
    assert recalled(prompt).count("<") == recalled(prompt).count(">") == 2
    lines = entries(prompt)
    assert [line[0] for line in lines].count("[") == [line[0] for line in lines].count("-") == 2
    assert all(line.startswith(("[2026-", "- ", "  ")) for line in lines)
    assert "\n".join(lines).splitlines() == lines


def test_a_turn_in_the_window_is_not_repeated() -> None:
    log = parse("u a u")
    prompt = ask(log, [hit("u", 3), hit("elsewhere", 3, chat="there"), hit("elsewhere", 3, chat="there")])
    assert [found.chat for found in prompt.hits] == ["there"]
    assert recalled(ask(log, [hit("u", 3)])) == ""


def test_what_recall_does_not_use_goes_to_the_window() -> None:
    log = parse("u " * 40, 100)
    assert len(ask(log, [], 3_000).window.messages) == 28, "its start moves in steps"
    assert len(ask(log, [hit("short", 1)], 3_000).window.messages) == 28
    long = [hit("x" * 500, n, chat="there") for n in range(40)]
    prompt = ask(log, long, 3_000)
    assert prompt.tokens["recalled"] > 2_250
    assert 350 < prompt.tokens["window"] <= 750
    assert prompt.tokens["free"] < 150


def test_hits_in_the_window_take_no_room_from_others() -> None:
    inside = [hit("x" * 500, n) for n in range(30, 40)]
    outside = [hit("x" * 500, n, chat="there") for n in range(5)]
    prompt = ask(parse("u " * 40, 100), inside + outside, 3_000)
    assert prompt.hits == tuple(outside)


def test_a_guaranteed_part_beyond_the_budget_leaves_no_room_for_recall() -> None:
    prompt = ask(parse("u:900"), [hit("short", 7)], 300)
    assert (prompt.hits, prompt.system, prompt.tokens["free"]) == ((), "", 0)
    assert prompt.window.over_budget
    prompt = ask(parse("u:290"), [hit("short", 7)], 300)
    assert (prompt.hits, prompt.tokens["total"]) == ((), 290)


def test_a_long_turn_is_cut_to_the_sentences_that_matched() -> None:
    filler = "word " * 4_000

    def shown(text: str, *words: str) -> str:
        return entries(ask([], [hit(text, 7, why=Why({"words": 1.0}, words))], 4_000))[1]

    line = shown(f"{filler}the Berlin marathon starts {filler}", "berlin", "marathon")
    assert line.count("the Berlin marathon starts") == 1
    assert (line.count("…"), len(line) < 4_000 / 32 * 4 + 20) == (2, True)
    assert shown(filler).startswith("- user: word word")
    assert shown(f"{filler}end", "end").endswith(" end")
    far = f"Berlin it is. {filler}. It starts at nine. {'The marathon is long. ' * 60}{filler}. Anna runs."
    parts = ("Berlin it is.", "It starts at nine.", "The marathon is long.", "Anna runs.")
    assert all(part in shown(far, "berlin", "marathon", "anna", "starts") for part in parts)
    assert (
        shown(f"{'語' * 9_000}。東京タワーに行く。{'語' * 9_000}", "東京タワー").count("東京タワーに行く")
        == 1
    )


def test_a_long_turn_is_whole_where_others_gain_less() -> None:
    answer = hit("word " * 400 + "end", 7)
    others = [hit("x" * 400, n, chat="there") for n in range(60)]
    for budget, is_whole in ((600, False), (1_000, True), (2_000, True)):
        prompt = ask([], [answer, *others], budget)
        assert (f"- user: {answer.text}" in recalled(prompt)) is is_whole, budget
    assert answer not in ask([], [*others[:30], answer], 2_000).hits


# Where it stands


def roles(prompt: Prompt) -> list[str]:
    return [
        "recalled" if str(one["content"]).startswith("<recalled>") else str(one["role"])
        for one in prompt.messages
    ]


@each(
    ("script", "order"),
    [
        ("u a u", "user assistant recalled user"),
        ("u a u a", "user assistant recalled user assistant"),
        ("u +x -x a u +y -y", "user assistant tool assistant recalled user assistant tool"),
        ("u +x u -x a", "user assistant tool recalled user assistant"),  # who writes while a tool runs
        ("u +x,y -x u -y", "user assistant tool tool recalled user"),
        ("a +x -x a", "recalled assistant assistant tool assistant"),
        ("s a", "recalled system assistant"),
        ("", "recalled"),
    ],
)
def test_what_was_recalled_stands_before_the_newest_user_message(script: str, order: str) -> None:
    assert roles(ask(parse(script), [hit("said", 7, chat="there")])) == order.split()


@given(LOGS, st.integers(0, 800))
def test_what_was_recalled_changes_nothing_around_it(log: list[Message], budget: int) -> None:
    prompt = ask(log, [hit("said", 7, chat="there")], budget)
    without = tuple(one for one in prompt.messages if not str(one["content"]).startswith("<recalled>"))
    assert without == to_chat(prompt.window.messages)
    order = roles(prompt)
    if "recalled" in order:
        place = order.index("recalled")
        assert order[place + 1 : place + 2] != ["tool"] or "tool_call_id" not in prompt.messages[place + 1]
        users = [message for message in prompt.window.messages if message.role == "user"]
        assert place == 0 or users
        if users:
            assert prompt.messages[place + 1] == to_openai(users[-1])[0]


def summary(n: int, text: str = "They met.", depth: int = 0) -> Summary:
    return Summary(
        f"sum_{n}",
        "here",
        depth,
        10 * n + 1,
        10 * n + 10,
        text,
        tokens=message_tokens(
            Message("user", summary_text(f"sum_{n}", depth, 10 * n + 1, 10 * n + 10, WHEN, WHEN, text))
        ),
        since=WHEN,
        until=WHEN,
        level="normal",
        messages=10,
        source_tokens=100,
        at=WHEN,
    )


def summarised(log: list[Message], summaries: list[Summary], hits: list[Hit], budget: int = 8_000) -> Prompt:
    def select(budget: int, _: int = 0, __: int = 0, /) -> Window:
        tokens = sum(message.tokens for message in log)
        plain = window_of(FreshTail(max(0, budget)), reversed(log), len(log), tokens)
        return replace(
            plain,
            summaries=tuple(summaries),
            tokens=plain.tokens + sum(one.tokens for one in summaries),
            budget=budget,
        )

    return build(select, hits, chat="here", budget=budget)


def test_summaries_stand_first() -> None:
    prompt = summarised(parse("a u a"), [summary(0), summary(1, depth=2)], [hit("said", 7, chat="there")])
    contents = [str(one["content"]).split("\n")[0] for one in prompt.messages]
    assert [content[:18] for content in contents] == [
        '<summary id="sum_0',
        '<summary id="sum_1',
        "assistant",
        "<recalled>",
        "user",
        "assistant",
    ]
    assert all(one["role"] == "user" for one in prompt.messages[:2])
    assert prompt.tokens["window"] == 30 + sum(one.tokens for one in prompt.window.summaries)
    sent = sum(4 + estimate_tokens(str(one["content"])) for one in (*prompt.messages[:2], prompt.messages[3]))
    assert prompt.tokens["total"] == sent + 30


# How the budget is split


def at_hours(script: str, hours: list[float], tokens: int = 100) -> list[Message]:
    """Read a log whose messages were said at some hours."""
    log = parse(script, tokens)
    return [replace(one, at=WHEN + timedelta(hours=at)) for one, at in zip(log, hours, strict=True)]


def many(count: int = 90) -> list[Hit]:
    return [hit("x" * 300, n, chat="there") for n in range(count)]


def test_a_session_of_half_the_budget_stays_whole() -> None:
    prompt = ask(at_hours("u a " * 18, [n * 7.0 for n in range(36)]), many(), 8_000)
    assert len(prompt.window.messages) == 36
    assert prompt.tokens["recalled"] > 4_000


def test_a_longer_session_is_kept_since_its_newest_pause() -> None:
    log = at_hours("u a " * 50, [n / 60 + (20 if n >= 84 else 0) for n in range(100)])
    assert seqs(ask(log, many(), 8_000))[0] == 85
    log = at_hours(
        "u a " * 50, [n / 60 + (20 if n >= 84 else 0) + (20 if n >= 97 else 0) for n in range(100)]
    )
    assert seqs(ask(log, many(), 8_000))[0] == 85, "three messages are less than an eighth of the budget"
    log = at_hours("u a " * 50, [n / 60 + (20 if n >= 85 else 0) for n in range(100)])
    assert seqs(ask(log, many(), 8_000))[0] == 87, "it begins with the user"


def test_the_newest_turn_is_whole_with_all_its_tools() -> None:
    tools = " ".join(f"+{n} -{n}" for n in range(30))
    log = at_hours(f"u a u a u {tools}", [n / 60 for n in range(65)])
    prompt = ask(log, many(), 8_000)
    assert seqs(prompt) == list(range(5, 66))
    assert prompt.tokens["total"] <= 8_000
    assert prompt.tokens["recalled"] > 1_500


def test_a_large_turn_that_has_been_answered_leaves_room_for_what_was_recalled() -> None:
    log = at_hours("u a u:1200 a", [n / 60 for n in range(4)])
    assert seqs(ask(log, many(), 2_000)) == [4]
    assert seqs(ask(log[:3], many(), 2_000)) == [3], "what the next answer is about"
    assert seqs(ask(log, many(1), 2_000)) == [1, 2, 3, 4], "where it is not needed, nothing is missing"


@each(("room", "most"), [(1_000, 250), (4_000, 1_000), (6_000, 2_250), (8_000, 4_000)])
def test_the_smaller_the_room_the_more_of_it_is_for_what_was_recalled(room: int, most: int) -> None:
    log = at_hours("u a " * 200, [n / 60 for n in range(400)], 10)
    prompt = ask(log, many(), room)
    assert most - room / 8 < prompt.tokens["window"] <= most
    assert prompt.tokens["total"] > 0.9 * room


@pytest.mark.parametrize("budget", [2_000, 4_000, 8_000])
def test_summaries_take_a_seventh_at_most_where_there_is_enough_to_recall(budget: int) -> None:
    log = [replace(one, seq=one.seq + 400) for one in at_hours("u a " * 30, [0.0] * 60, budget // 100)]
    made = [summary(n, "They met. " * (budget // 120)) for n in range(40)]
    kept = sum(one.tokens for one in log)
    stats = ChatStats(460, 4_000 + kept, 4_000 + kept, summarised=400)
    select = selector(Lossless(budget), reversed(log), stats, made)
    prompt = build(select, many(200), chat="here", budget=budget)
    window = prompt.window
    assert window.summaries == tuple(made[-len(window.summaries) :])
    assert budget / 16 < sum(one.tokens for one in window.summaries) <= budget / 7
    assert prompt.tokens["recalled"] > budget / 2 - 200
    shown = sum(one.messages for one in window.summaries) + len(window.messages)
    assert shown + sum(one.messages for one in window.omitted) == 460
    told = sum(one.source_tokens for one in window.summaries) + sum(one.tokens for one in window.messages)
    assert told + sum(one.tokens for one in window.omitted) == 4_000 + kept
    select = selector(Lossless(4 * budget), reversed(log), stats, made)
    few = build(select, many(1), chat="here", budget=4 * budget)
    assert few.window.summaries == tuple(made), "where there is room, nothing is missing"
    assert not few.window.omitted


HITS = st.lists(
    st.builds(
        hit,
        st.text("ab <>&\n語é", min_size=1, max_size=40).map(lambda text: text * 5),
        st.integers(1, 24),
        st.sampled_from(["here", "here", "there"]),
    ),
    max_size=12,
)


@given(
    LOGS,
    HITS,
    st.integers(0, 600),
    st.integers(0, 4),
    st.sampled_from(["", "Be brief.", "x" * 400]),
    st.booleans(),
    st.sampled_from([estimate_tokens, len, lambda text: int(len(text) ** 1.1)]),
)
def test_a_prompt_adds_up(
    log: list[Message], hits: list[Hit], budget: int, turns: int, system: str, first: bool, count: CountTokens
) -> None:
    prompt = ask(log, hits, budget, FreshTail(10_000, turns, user_first=first), system=system, count=count)
    tokens = prompt.tokens
    assert tokens["system"] == (count(prompt.system) if prompt.system else 0)
    assert tokens["recalled"] == (4 + count(recalled(prompt)) if prompt.hits else 0)
    assert tokens["window"] == sum(message.tokens for message in prompt.window.messages)
    assert tokens["total"] == tokens["system"] + tokens["recalled"] + tokens["window"]
    assert tokens["free"] == max(0, budget - tokens["total"])
    assert prompt.system == system
    if tokens["total"] > budget:  # only what is always there
        assert not prompt.hits
        assert prompt.window.over_budget or tokens["system"] > budget
    shown = [("here", message.seq) for message in prompt.window.messages]
    shown += [(found.chat, found.seq) for found in prompt.hits]
    assert len(shown) == len(set(shown))
    ranks = [hits.index(found) for found in prompt.hits]
    assert ranks == sorted(ranks)


@pytest.mark.slow
@given(LOGS, HITS, st.integers(0, 6_000))
@example(
    make([*[("user", (), 1)] * 7, ("user", (), 14), ("call", ("call_0",), 5), ("user", (), 16)]),
    [hit("<" * 5, 5)],
    720,
)
def test_a_hit_is_lost_only_for_want_of_room(log: list[Message], hits: list[Hit], budget: int) -> None:
    log = [replace(message, tokens=message.tokens * 20) for message in log]
    prompt = ask(log, hits, budget, TokenBudget(10_000, 0))
    shown = {("here", message.seq) for message in prompt.window.messages}
    shown |= {(found.chat, found.seq) for found in prompt.hits}
    needed = 70 + sum(estimate_tokens(escape(found.text.replace("\n", "\n  "))) + 20 for found in hits)
    newest = next((message.seq for message in reversed(log) if message.role == "user"), 1)
    turn = sum(message.tokens for message in log[newest - 1 :])
    left = budget - max(budget / 2, turn)
    assert needed > left or all((found.chat, found.seq) in shown for found in hits)
