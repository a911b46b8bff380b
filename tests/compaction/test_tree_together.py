"""Several threads and processes at one session: nobody waits for a model, and one valid tree is left."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from subprocess import Popen
from threading import Event

import pytest
from tree_logs import check_tree, check_words, covered_by, frontier_of

from holdfast import Memory, Message
from holdfast.chat import Chat
from holdfast.prompt.window import Compaction, Lossless, SummaryBuffer
from programs import run, run_together, start

WAIT = 60  # seconds after which a test has failed
LOST = "The chat was changed concurrently"
SENTENCE = "The tulips in the garden of Ada bloom in April. "
POLICY = Lossless(600, Compaction(leaf_source=300, fan_in=(2, 2), tail=0.2))

APPEND = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], user="ada") as memory:
    print(memory.chat("monday").append(role="user", content="from another process").seq)
"""
COMPACT = """
import sys
from holdfast import Memory
from holdfast.prompt.window import Compaction, Lossless, SummaryBuffer
single, turn = sys.argv[2] == "single", int(sys.argv[3])
asked = []
def answer(prompt):
    asked.append(prompt)
    if len(asked) == turn:
        print("thinking", flush=True)
        input()
    return f"They spoke of a garden, says {sys.argv[4]}."
policy = SummaryBuffer(600) if single else Lossless(
    600, Compaction(leaf_source=300, fan_in=(2, 2), tail=0.2, calls=1000))
with Memory(sys.argv[1], user="ada") as memory:
    result = memory.chat("monday").compact(full=True, policy=policy, llm=answer)
print(len(result.summaries), "concurrently" in result.why)
"""
WORK = """
import sys
from holdfast import Memory, Message
from holdfast.prompt.window import Compaction, Lossless, SummaryBuffer
policy = SummaryBuffer(600) if sys.argv[2] == "single" else Lossless(
    600, Compaction(leaf_source=200, leaf_target=30, fan_in=(2, 2), tail=0.2))
memory = Memory(sys.argv[1], user="ada")
chat = memory.chat("monday")
while True:
    chat.append([Message("user", f"{n}: the tulips bloom in the garden of Ada. " * 3) for n in range(20)])
    print("appended", flush=True)
    chat.compact(full=True, policy=policy, progress=lambda so_far: print(so_far.messages, flush=True))
"""


def talk(chat: Chat, turns: int) -> None:
    chat.append([Message("user", f"{n}: {SENTENCE}") for n in range(turns)])


def check(memory: Memory, chat: Chat) -> None:
    check_tree(memory, chat, chat.history())
    check_words(chat, chat.history())


def test_another_thread_does_not_wait_for_the_model(memory: Memory) -> None:
    chat = memory.chat("monday")
    talk(chat, 100)
    thinks, may_go_on = Event(), Event()

    def answer(prompt: str) -> str:
        thinks.set()
        assert may_go_on.wait(WAIT), "the other thread has waited for the model"
        return "They spoke of a garden."

    with ThreadPoolExecutor(2) as pool:
        compacting = pool.submit(lambda: chat.compact(full=True, policy=POLICY, llm=answer))
        assert thinks.wait(WAIT)
        stored = pool.submit(lambda: chat.append(role="user", content="meanwhile")).result(WAIT)
        pool.submit(lambda: chat.remember("Ada lives in Berlin.")).result(WAIT)
        pool.submit(lambda: (chat.window(), chat.prompt(), chat.tree(), memory.recall("tulips"))).result(WAIT)
        assert not compacting.done()
        may_go_on.set()
        result = compacting.result(WAIT)
    assert stored.seq == 101
    assert result.leaves > 1
    assert chat.history()[-1] == stored
    assert covered_by(chat) < 101
    check(memory, chat)


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 3, 8])
def test_another_process_does_not_wait_for_the_model(
    shared_location: str, reopen: Callable[[], Memory], at: int
) -> None:
    memory = reopen()
    chat = memory.chat("monday")
    talk(chat, 100)
    asked: list[str] = []
    appended: list[int] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == at:
            appended.append(int(run(APPEND, shared_location)))
        return "They spoke of a garden in which the tulips of Ada bloom." * 3

    policy = Lossless(600, Compaction(leaf_source=200, fan_in=(2, 2), tail=0.2, calls=1000))
    chat.compact(full=True, policy=policy, llm=answer)
    assert appended == [101], "the model was asked that often, and the other process did not wait"
    assert chat.history()[-1].content == "from another process"
    check(memory, chat)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["tree", "single"])
@pytest.mark.parametrize("turn", [1, 2])
def test_of_two_processes_that_compact_at_once_one_finds_out(
    shared_location: str, reopen: Callable[[], Memory], shape: str, turn: int
) -> None:
    """Both have their answers before either stores; with a second turn, one has lost before that."""
    memory = reopen()
    chat = memory.chat("monday")
    talk(chat, 120)
    if turn == 2:
        # The second process begins where the first has stored a leaf already: it waits at its own first
        # answer.
        first = [shared_location, shape, 2, "one"]
        second = [shared_location, shape, 1, "two"]
        with start(COMPACT, *first) as leading, start(COMPACT, *second) as following:
            for program in (leading, following):
                assert program.stdout is not None
                assert program.stdout.readline() == "thinking\n"
            outputs = [program.communicate("go\n")[0] for program in (following, leading)]
    else:
        outputs = run_together(COMPACT, [[shared_location, shape, 1, name] for name in ("one", "two")])
    made, lost = zip(*(output.split() for output in outputs), strict=True)
    assert "True" in lost, outputs
    if turn == 1:
        assert sorted(lost) == ["False", "True"]
        assert made[lost.index("True")] == "0"
    check(memory, chat)
    policy = SummaryBuffer(600) if shape == "single" else POLICY
    chat.compact(full=True, policy=policy)
    check(memory, chat)
    assert shape == "tree" or len(frontier_of(chat.tree())) == 1


def test_many_threads_that_compact_at_once_leave_one_tree(memory: Memory) -> None:
    chat = memory.chat("monday")
    talk(chat, 200)

    def work(number: int) -> bool:
        talk(chat, 5)
        policy = SummaryBuffer(500) if number % 4 == 3 else POLICY
        return chat.compact(full=True, policy=policy).why.startswith(LOST)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(12)))
    check(memory, chat)
    assert not chat.compact(full=True, policy=POLICY).why.startswith(LOST)
    check(memory, chat)


def test_a_window_read_while_others_append_and_compact_accounts_for_all_before_it(memory: Memory) -> None:
    chat = memory.chat("monday")
    talk(chat, 40)
    over = Event()

    def write() -> None:
        for _ in range(25):
            talk(chat, 15)
            chat.compact(full=True, policy=POLICY)
        over.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not over.is_set() and not writing.done():
            stats = chat.stats()
            window = chat.window(policy=Lossless(600))
            ranges = [(one.first, one.last) for one in window.summaries]
            ranges += [(message.seq, message.seq) for message in window.messages]
            ranges += [(one.first, one.last) for one in window.omitted]
            numbers = [seq for first, last in sorted(ranges) for seq in range(first, last + 1)]
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) >= stats.messages
            assert all(one.messages > 0 and one.tokens >= 0 for one in window.omitted)
            assert not window.over_budget
        writing.result()


# Killed


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
        check(memory, chat)
        assert len(chat.history()) % 20 == 0
        assert len(chat.tree()) >= summaries
        policy = SummaryBuffer(600) if shape == "single" else POLICY
        chat.compact(full=True, policy=policy)
        check(memory, chat)
        assert not chat.needs_compaction(policy=policy)
        summaries = len(chat.tree())
        memory.close()
    assert summaries
