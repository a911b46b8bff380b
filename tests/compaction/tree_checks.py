"""Random sessions, ways to compact them, and what must be true of every summary tree and window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeAlias

from hypothesis import strategies as st

from handles import memory_of
from holdfast import Chat, CompactionResult, Message, Summary, ToolCall, Window
from holdfast.prompt.window import Compaction, LastN, Lossless, SummaryBuffer

Event: TypeAlias = tuple[str, tuple[str, ...], str]  # what, ids of calls, text
Policy: TypeAlias = Lossless | SummaryBuffer
LIMITS = (
    "The ",
    "It made",
    "An incremental",
)  # how a reason begins that says no more than that it may not go on

PARTS = [
    "The tulips in the garden of Ada bloom in April. ",
    "She decided to move to Berlin on 3 May 2026! ",
    "ok ",
    "花园里的郁金香在四月开放。",
    "Die Größe der Straße? ",
    "🌷🌷 ",
    "a < b && c > d </summary> ",
    "def f(x): return x\n",
    "x" * 40 + " ",
]
TEXTS = st.builds(
    lambda parts, times: "".join(parts) * times,
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
    st.sampled_from([1, 1, 2, 5, 12, 60]),
)
IDS = st.lists(st.sampled_from(["call_0", "call_1", "call_2"]), min_size=1, max_size=3, unique=True).map(
    tuple
)
PLAIN: st.SearchStrategy[Event] = st.tuples(
    st.sampled_from(["user", "user", "assistant", "assistant", "system", "tool"]), st.just(()), TEXTS
)
TOOLS: st.SearchStrategy[Event] = st.tuples(
    st.sampled_from(["call", "result", "result"]), IDS, st.just("") | TEXTS
)
EVENTS: st.SearchStrategy[list[Event]] = st.lists(st.one_of(PLAIN, TOOLS), min_size=1, max_size=20)


def say(events: Sequence[Event], start: int = 0) -> list[Message]:
    """Make messages of events; each that has a text has a word of its own, by its number."""
    said = []
    for number, (what, ids, text) in enumerate(events, start + 1):
        content = f"{text} {mark(number)}" if text else ""
        if what == "call":
            calls = tuple(ToolCall(identity, "look", {"for": mark(number)}) for identity in ids)
            said.append(Message("assistant", content, calls=calls))
        elif what == "result":
            said.append(Message("tool", content, call_id=ids[0], answers=ids))
        elif what == "tool":
            said.append(Message("tool", content))
        else:
            role = {"user": "user", "assistant": "assistant"}.get(what, "system")
            said.append(Message(role, content))  # type: ignore[arg-type]  # one of the roles
    return said


def mark(number: int) -> str:
    """Name a word that only one message has."""
    return f"zq{number:05}qz"


@st.composite
def compactions(draw: st.DrawFn) -> Compaction:
    target, threshold = sorted(draw(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=2)))
    return Compaction(
        threshold=threshold,
        target=target,
        turns=draw(st.integers(0, 6)),
        tail=draw(st.sampled_from([0.01, 0.2, 0.4, 1.0])),
        keep=draw(st.integers(0, 4)),
        leaf_source=draw(st.sampled_from([1, 120, 300, 1_000, 20_000])),
        leaf_target=draw(st.sampled_from([1, 30, 100, 2_400])),
        condensed_target=draw(st.sampled_from([1, 30, 100, 2_000])),
        fan_in=(draw(st.integers(2, 4)), draw(st.integers(2, 4))),
        pressed=draw(st.integers(2, 4)),
        previous=draw(st.integers(0, 2)),
        seconds=1e9,
        calls=draw(st.sampled_from([0, 1, 3, 10_000, 10_000, 10_000])),
        spend=draw(st.sampled_from([None, None, None, 0, 900, 4_000])),
    )


BUDGETS = st.sampled_from([0, 1, 60, 300, 700, 1_500, 4_000, 20_000])
LOSSLESS: st.SearchStrategy[Lossless] = st.builds(Lossless, BUDGETS, compactions())
BUFFERS: st.SearchStrategy[SummaryBuffer] = st.builds(
    lambda budget, shares, keep: SummaryBuffer(budget, max(shares), min(shares), keep),
    BUDGETS,
    st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 1.0)),
    st.integers(0, 10),
)
POLICIES: st.SearchStrategy[Policy] = st.one_of(LOSSLESS, LOSSLESS, BUFFERS)

# How models answer. The source is a part of the prompt, which therefore is longer than it.
MODELS: Mapping[str, Callable[[str], str] | None] = {
    "none": None,
    "well": lambda prompt: "They spoke of a garden.",
    "longer than asked for": lambda prompt: "They spoke of a garden and of the tulips in it. " * 4,
    "far too long": lambda prompt: "They spoke of a garden and of the tulips in it. " * 200,
    "longer than the source": lambda prompt: prompt + prompt,
    "nothing": lambda prompt: " \n",
    "thoughts only": lambda prompt: "<think>Hm.</think>",
    "markup": lambda prompt: "<b>&</b> " * 12,
}


def frontier_of(tree: Sequence[Summary]) -> list[Summary]:
    return sorted((one for one in tree if not one.parent), key=lambda one: one.first)


def covered_by(chat: Chat) -> int:
    return max((one.last for one in chat.tree()), default=0)


def follow(nodes: Sequence[Summary], first: int, last: int) -> bool:
    """Say whether ranges are side by side from one number to another."""
    edges = [(one.first, one.last) for one in nodes]
    starts = [first, *(end + 1 for _, end in edges)]
    return all(start == begin <= end for start, (begin, end) in zip(starts, edges, strict=False)) and (
        starts[-1] == last + 1
    )


def check_tree(chat: Chat, log: Sequence[Message] | None = None, cap: int = 50) -> None:
    """Check what always holds of a session with `log`: its tree, its counts, the way to its words."""
    log = chat.history() if log is None else log
    memory = memory_of(chat)
    tree = chat.tree()
    assert tree == sorted(tree, key=lambda one: (one.depth, one.first))
    frontier = frontier_of(tree)
    assert chat.window(10**9).summaries == tuple(frontier)
    last = frontier[-1].last if frontier else 0
    assert follow(frontier, 1, last)
    assert follow([one for one in tree if not one.depth], 1, last)
    for node in tree:
        below = [one for one in tree if one.parent == node.id]
        inside = [message for message in log if node.first <= message.seq <= node.last]
        assert bool(below) == bool(node.depth)
        assert not below or (
            follow(below, node.first, node.last) and {one.depth for one in below} == {node.depth - 1}
        )
        assert node.messages == len(inside) > 0
        assert node.source_tokens == sum(message.tokens for message in inside)
        times = [message.at for message in inside if message.at]
        assert (node.since, node.until) == (min(times), max(times))
        assert node.text.strip()
        assert node.tokens > 0
    check_words(chat, log, cap)
    stats = chat.stats()
    rest = [message for message in log if message.seq > last]
    assert (stats.messages, stats.stored_tokens) == (len(log), sum(one.tokens for one in log))
    assert stats.summarised == len(log) - len(rest)
    assert stats.context_tokens == sum(one.tokens for one in frontier) + sum(one.tokens for one in rest)
    problems = memory.verify().problems
    early = [
        f"message {chat.id}#{seq} is the result of a call that a later message makes"
        for seq in early_results(log)
    ]
    assert [one for one in problems if "that a later message makes" not in one] == []
    assert sorted(one.split(":")[0] for one in problems if f" {chat.id}#" in one) == sorted(early)


def check_words(chat: Chat, log: Sequence[Message], cap: int = 50) -> None:
    """Check that the way down from the frontier, with what follows it, is every message once, in order."""
    frontier = frontier_of(chat.tree())
    walked = [message for one in frontier for message in walk(chat, one.id, cap)]
    walked += chat.history(after=frontier[-1].last if frontier else 0)
    assert walked == list(log) == chat.history()


def walk(chat: Chat, identity: str, cap: int) -> list[Message]:
    """Read all messages behind a summary, by cursors."""
    found: list[Message] = []
    cursor = None
    while True:
        part = chat.expand(identity, cap, cursor=cursor)
        assert part.summary.id == identity
        assert {one.parent for one in part.children} <= {identity}
        items: list[Message | Summary] = [*part.messages, *part.children]
        assert items, "an expansion gives one item at least"
        assert len(items) == 1 or sum(one.tokens for one in items) <= cap
        found += part.messages
        for child in part.children:
            found += walk(chat, child.id, cap)
        assert part.truncated == (part.cursor is not None)
        if not part.truncated:
            return found
        cursor = part.cursor


def early_results(log: Sequence[Message]) -> list[int]:
    """Return where the newest results are that came before their calls, if the last of these has none."""
    results = {one.call_id: one.seq for one in log if one.call_id and not one.answers}
    called = {call.id: one.seq for one in log for call in one.calls}
    answered = {answer: one.seq for one in log for answer in one.answers}
    return [seq for call, seq in results.items() if called.get(call, 0) > answered.get(call, 0)]


@dataclass(frozen=True)
class Pair:
    """A call and a result of it, as they were when the result was stored."""

    call: int
    result: int


def pairs_of(log: Sequence[Message]) -> set[Pair]:
    """Join each result to the nearest earlier call with its id."""
    made: dict[str, int] = {}
    pairs = set()
    for message in log:
        pairs |= {Pair(made[answer], message.seq) for answer in message.answers if answer in made}
        made |= {call.id: message.seq for call in message.calls}
    return pairs


def groups_of(log: Sequence[Message]) -> list[list[Message]]:
    """Group what a window may show, newest first, by definition: whole tool use, and what is in between.

    A result of which a call is missing is broken, as a call is that has no result, and all that hangs
    together with it.
    """
    last: dict[str, int] = {}
    pairs: set[Pair] = set()
    out: set[int] = set()
    answered: set[tuple[int, str]] = set()
    for message in log:
        for answer in message.answers:
            if answer in last:
                pairs.add(Pair(last[answer], message.seq))
                answered.add((last[answer], answer))
            else:
                out.add(message.seq)
        if message.call_id and not message.answers:
            out.add(message.seq)
        last |= {call.id: message.seq for call in message.calls}
    out |= {m.seq for m in log if any((m.seq, call.id) not in answered for call in m.calls)}
    while (
        more := {seq for pair in pairs for seq in (pair.call, pair.result) if {pair.call, pair.result} & out}
        - out
    ):
        out |= more
    groups: list[list[Message]] = []
    for message in log:
        if message.seq in out:
            continue
        joined = groups and any(
            groups[-1][0].seq <= pair.call <= groups[-1][-1].seq and pair.call < message.seq <= pair.result
            for pair in pairs
            if pair.call not in out
        )
        if joined:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups[::-1]


def check_window(window: Window, policy: Policy, log: Sequence[Message], frontier: Sequence[Summary]) -> None:
    """Check that a window keeps to its budget, splits no tool use, and accounts for every message once."""
    assert window.budget == policy.budget
    shown_tokens = sum(one.tokens for one in window.messages)
    assert window.tokens == sum(one.tokens for one in window.summaries) + shown_tokens
    assert window.summaries == tuple(frontier)[len(frontier) - len(window.summaries) :]
    behind = {m.seq for m in log if any(one.first <= m.seq <= one.last for one in window.summaries)}
    shown = {message.seq for message in window.messages}
    assert not behind & shown
    left = [message for message in log if message.seq not in behind | shown]
    assert sum(one.messages for one in window.omitted) == len(left)
    assert sum(one.tokens for one in window.omitted) == sum(message.tokens for message in left)
    assert all(any(one.first <= message.seq <= one.last for one in window.omitted) for message in left)
    whole = {message.seq for group in groups_of(window.messages) for message in group}
    assert whole == shown, "a call without its results, or a result without its call"
    short = {one.seq: one for one in window.shortened}
    as_said = sum(one.tokens for one in window.summaries) + sum(one.tokens for one in log if one.seq in shown)
    for message, original in zip(window.messages, (one for one in log if one.seq in shown), strict=True):
        if one := short.pop(message.seq, None):
            assert (one.tokens, one.saved) == (original.tokens, original.tokens - message.tokens)
            assert (message.role, message.answers) == (original.role, original.answers)
            # What is large, once its turn is over, and before that what the user pastes; and anything where
            # what is shown would not fit as it was said.
            is_pasted = message.role in ("tool", "user")
            most = min(2_000, policy.budget / 8) if is_pasted else policy.budget / 2
            assert original.tokens > most or as_said > policy.budget
            is_over = message.seq < max((one.seq for one in log if one.role == "user"), default=0)
            assert message.role == "user" or is_over or as_said > policy.budget
        else:
            assert message == original
    assert not short
    start = frontier[-1].last if frontier else 0
    groups = groups_of([message for message in log if message.seq > start])
    is_kept = policy.compaction.turns if isinstance(policy, Lossless) else policy.keep
    as_shown = {message.seq: message for message in window.messages}
    newest = [as_shown.get(one.seq, one) for one in groups[0]] if groups and is_kept else []
    pinned = sum(one.tokens for one in frontier) if isinstance(policy, SummaryBuffer) else 0
    guaranteed = pinned + sum(message.tokens for message in newest)
    if isinstance(policy, SummaryBuffer):
        assert window.summaries == tuple(frontier), "a cumulative summary never leaves the window"
    if guaranteed > policy.budget:
        assert window.over_budget
        assert list(window.messages) == newest
    else:
        assert not window.over_budget
        assert set(shown) >= {message.seq for message in newest}


def check_windows(chat: Chat, log: Sequence[Message], policies: Sequence[Policy]) -> None:
    frontier = frontier_of(chat.tree())
    for policy in policies:
        check_window(chat.window(policy=policy), policy, log, frontier)
    everything = chat.window(policy=LastN(10**6))
    assert everything.summaries == ()


def tail_of(log: Sequence[Message], policy: Policy) -> list[Message]:
    """Return what no compaction may touch: the newest turns that fit, else the newest part of one."""
    how = policy.compaction
    cap = int(policy.budget * how.tail)
    pairs = pairs_of(log)
    starts = [len(log)]
    for place, message in enumerate(log):
        rest = log[place:]
        users = sum(one.role == "user" for one in rest)
        if any(pair.call < message.seq <= pair.result for pair in pairs):
            continue
        if sum(one.tokens for one in rest) > cap:
            continue
        if message.role == "user" and users <= how.turns:
            starts.append(place)
        if how.turns and users <= 1 and (message.role == "user" or not users):
            starts.append(place)
    start = min(*starts, len(log) - min(how.keep, len(log)))
    return list(log[start:])


def check_result(
    chat: Chat,
    result: CompactionResult,
    before: Sequence[Summary],
    summarised: int,
    context: int,
    policy: Policy,
) -> None:
    """Check that the account of a compaction that nobody disturbed agrees with what it left."""
    tree, stats = chat.tree(), chat.stats()
    assert (result.tokens_before, result.tokens_after) == (context, stats.context_tokens)
    assert result.tokens_after <= result.tokens_before
    assert result.messages == stats.summarised - summarised
    assert result.noop == (list(before) == tree)
    assert result.leaves + result.nodes == len(result.summaries)
    known = {one.id for one in before}
    made = [one for one in result.summaries if one.id not in known]
    assert {one.id for one in made} == {one.id for one in tree} - known
    assert result.leaves == sum(not one.depth for one in tree if one.id not in known)
    newest = {one.id: one for one in result.summaries}
    kept = {replace(one, parent="") for one in before if one.id not in newest}
    assert kept <= {replace(one, parent="") for one in tree}, "what was written before stays as it is"
    by_id = {one.id: replace(one, parent="") for one in tree}
    assert all(by_id[identity] == one for identity, one in newest.items())
    assert result.why
    assert result.seconds >= 0
    check_sizes(tree, result, known, policy)


def check_sizes(
    tree: Sequence[Summary], result: CompactionResult, known: AbstractSet[str], policy: Policy
) -> None:
    """Check that new summaries have no more parts than they may, and that what was too many is named."""
    how = policy.compaction
    assert all(identity in result.why for identity in result.beyond)
    if isinstance(policy, Lossless):
        for one in tree:
            if one.id not in known and one.depth and one.id not in result.beyond:
                most = max(how.pressed, how.fan_in[min(one.depth, 2) - 1])
                assert sum(part.parent == one.id for part in tree) <= most
    assert result.calls <= how.calls
