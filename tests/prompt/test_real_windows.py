"""Windows over real sessions with tool calls: whatever the budget, a call comes with its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Chat, Memory
from holdfast.prompt.window import LastN, Policy, TokenBudget
from holdfast_cli.formats.importing import import_paths

BUDGETS = (0, 100, 500, 1_000, 2_000, 4_000, 8_000, 32_000, 128_000)


def assert_calls_have_their_results(chat: Chat, budget: int, policy: Policy | None) -> int:
    """Walk through a window with the calls that still wait for their results, and count the results."""
    waiting: dict[str, int] = {}
    results = 0
    for message in chat.window(budget, policy=policy).messages:
        for call in message.calls:
            waiting[call.id] = message.seq
        for answer in message.answers:
            assert answer in waiting, f"{chat.id} #{message.seq} answers a call that the window lacks"
            del waiting[answer]
            results += 1
    assert not waiting, f"{chat.id}: calls without results in a window of {budget} tokens: {waiting}"
    return results


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agent_sessions/claude_code.jsonl", "tool_dialogues/tau_airline.jsonl"])
def test_every_call_is_followed_by_its_results_in_every_window(shared_data: Path, name: str) -> None:
    with Memory(":memory:") as memory:
        import_paths(memory, shared_data / name)
        results = 0
        for info in memory.chats():
            chat = memory.chat(info.id)
            results += sum(assert_calls_have_their_results(chat, budget, None) for budget in BUDGETS)
            for n in (1, 2, 5, 20):
                results += assert_calls_have_their_results(chat, 0, LastN(n))
                results += assert_calls_have_their_results(chat, 0, TokenBudget(300, keep=n))
        assert results > 100
