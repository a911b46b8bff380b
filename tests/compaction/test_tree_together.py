"""Several threads and processes at one session: nobody waits for a model, and one valid tree is left."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from subprocess import Popen

import pytest
from compaction_chats import buffer, lossless
from tree_checks import Policy, check_tree, frontier_of

from holdfast import Chat, Memory, Message
from programs import start

POLICIES: dict[str, Policy] = {
    "tree": lossless(600, leaf_source=300, fan_in=(2, 2), tail=0.2),
    "single": buffer(600),
}


POLICY = """
import sys
from holdfast import Memory, Message
from holdfast.prompt.window import Compaction, Lossless, SummaryBuffer
how = Compaction(leaf_source=300, fan_in=(2, 2), tail=0.2, calls=1000)
policy = SummaryBuffer(600) if sys.argv[2] == "single" else Lossless(600, how)
memory = Memory(sys.argv[1], user="ada")
chat = memory.chat("monday")
"""

COMPACT = f"""{POLICY}
asked = []
def answer(prompt):
    asked.append(prompt)
    if len(asked) == int(sys.argv[3]):
        print("thinking", flush=True)
        input()
    return f"They spoke of a garden, says {{sys.argv[4]}}."
result = chat.compact(full=True, policy=policy, llm=answer)
memory.close()
print(len(result.summaries), "concurrently" in result.why)
"""

WORK = f"""{POLICY}
while True:
    chat.append([Message("user", f"{{n}}: the tulips bloom in the garden of Ada. " * 3) for n in range(20)])
    print("appended", flush=True)
    chat.compact(full=True, policy=policy, progress=lambda so_far: print(so_far.messages, flush=True))
"""


def talk(chat: Chat, turns: int) -> None:
    chat.append(
        [Message("user", f"{n}: The tulips in the garden of Ada bloom in April. ") for n in range(turns)]
    )


# What happens while a model thinks


def test_what_was_written_of_an_erased_chat_is_not_stored_in_the_next_one_of_that_name(
    memory: Memory,
) -> None:
    """The same count of messages, of tokens and the same times: only the words are others."""
    chat = memory.chat("monday")
    at = chat.append([Message("user", f"secret{n:03} " * 20) for n in range(60)])[0].at
    done: list[bool] = []

    def answer(prompt: str) -> str:
        if not done:
            done.append(True)
            memory.erase(chat="monday")
            chat.append([Message("user", f"public{n:03} " * 20, at=at) for n in range(60)])
        return "They spoke of " + ("secret001." if "secret001" in prompt else "something public.")

    result = chat.compact(full=True, budget=1_000, llm=answer)
    assert "secret" not in " ".join(one.text for one in chat.tree())
    assert result.noop
    assert "changed concurrently" in result.why


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "turn"), [("tree", 2), ("single", 1)])
def test_of_two_processes_that_compact_at_once_one_finds_out(
    shared_location: str, reopen: Callable[[], Memory], shape: str, turn: int
) -> None:
    """Both have their answers before either stores; with a second turn, one has lost before that."""
    memory = reopen()
    chat = memory.chat("monday")
    talk(chat, 120)
    # With the second turn, the second process begins where the first has stored a leaf already.
    leading, following = [shared_location, shape, turn, "one"], [shared_location, shape, 1, "two"]
    with ThreadPoolExecutor() as pool, start(COMPACT, *leading) as one, start(COMPACT, *following) as two:
        for program in (one, two):
            assert program.stdout is not None
            assert program.stdout.readline() == "thinking\n"
        outputs = list(pool.map(lambda program: program.communicate("go\n")[0], (one, two)))
    made, lost = zip(*(output.split() for output in outputs), strict=True)
    assert "True" in lost, outputs
    if turn == 1:
        assert sorted(lost) == ["False", "True"]
        assert made[lost.index("True")] == "0"
    check_tree(chat)
    chat.compact(full=True, policy=POLICIES[shape])
    check_tree(chat)
    assert shape == "tree" or len(frontier_of(chat.tree())) == 1


def killed_after(program: Popen[str], lines: int) -> None:
    """Read some lines of a program and kill it."""
    assert program.stdout is not None
    with program:
        read = [program.stdout.readline() for _ in range(lines)]
        program.kill()
        assert all(read), program.stderr.read() if program.stderr else ""


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["tree", "single"])
def test_a_process_killed_at_any_moment_of_a_compaction_leaves_a_tree_that_goes_on(
    shared_location: str, reopen: Callable[[], Memory], shape: str
) -> None:
    chance = random.Random(shape)
    reopen().close()
    summaries = 0
    for _ in range(3):
        killed_after(start(WORK, shared_location, shape), chance.randint(2, 25))
        memory = reopen()
        chat = memory.chat("monday")
        check_tree(chat)
        assert len(chat.history()) % 20 == 0
        assert len(chat.tree()) >= summaries
        policy = POLICIES[shape]
        chat.compact(full=True, policy=policy)
        check_tree(chat)
        assert not chat.needs_compaction(policy=policy)
        summaries = len(chat.tree())
        memory.close()
    assert summaries
