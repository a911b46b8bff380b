"""Take back, edit, try again: what windows, recall, learning and exports then see, and how to go back."""

from __future__ import annotations

import io
import random
import signal
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import Conflict, InvalidInput, Learning, Memory, ToolCall
from holdfast.types import Source
from holdfast_cli.formats.everything import export_everything
from holdfast_cli.formats.export import export_chats
from holdfast_cli.formats.importing import import_paths
from learning_scripts import Model
from programs import run_together, start
from tables import each

TOPICS = ("anchors", "beeches", "cellos", "dunes", "ebony", "falcons", "ginger", "harps", "ivy", "jade")


def tell(memory: Memory, *topics: str, chat: str = "monday") -> list[int]:
    """Append a question and an answer for each topic, and return the seqs of the questions."""
    turns = [({"role": "user", "content": f"What of {t}?"}, answer(t)) for t in topics]
    return [memory.chat(chat).append(list(turn))[0].seq for turn in turns]


def answer(topic: str) -> dict[str, str]:
    return {"role": "assistant", "content": f"There is much to be said of {topic}, by those who know. " * 8}


def seqs(memory: Memory, chat: str = "monday", branch: int | None = None) -> list[int]:
    return [message.seq for message in memory.chat(chat).history(branch=branch)]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user="ada") as made:
        tell(made, *TOPICS[:4])
        yield made


# Taking back


def test_what_is_taken_back_is_in_no_window_and_the_chat_goes_on_before_it(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.rewind(to=4)
    assert seqs(memory) == [1, 2, 3, 4]
    assert chat.append(role="user", content="What of kites?").seq == 9
    assert [message.seq for message in chat.window(8_000).messages] == [1, 2, 3, 4, 9]
    assert (chat.stats().messages, chat.stats().aside) == (5, 4)
    assert chat.stats().stored_tokens == sum(message.tokens for message in chat.history())
    assert memory.chats()[0].messages == 5
    assert memory.verify().problems == ()


def test_a_chat_may_be_taken_back_to_its_beginning(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.rewind(to=0)
    assert (chat.history(), chat.stats().messages, chat.window(100).messages) == ([], 0, ())
    assert chat.append(role="user", content="Anew.").seq == 9
    assert chat.stats().oldest == chat.stats().newest == chat.history()[0].at
    assert [(branch.head, branch.shared) for branch in chat.branches()] == [(8, 0), (9, 0)]
    assert memory.verify().problems == ()


@each("to", [-1, 9, 1.5, "4", None, True])
def test_only_messages_of_the_branch_can_be_the_last(memory: Memory, to: object) -> None:
    with pytest.raises(InvalidInput):
        memory.chat("monday").rewind(to)  # type: ignore[arg-type]  # as it is called wrongly
    assert seqs(memory) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_what_was_taken_back_cannot_be_the_last(memory: Memory) -> None:
    memory.chat("monday").rewind(4)
    with pytest.raises(InvalidInput, match="not on the current branch"):
        memory.chat("monday").rewind(6)


def test_an_unknown_chat_has_nothing_to_take_back() -> None:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("sunday")
        chat.rewind(0)
        assert (chat.branches(), chat.history(), memory.chats()) == ([], [], [])
        for call in (
            lambda: chat.rewind(1),
            chat.regenerate,
            lambda: chat.edit(1, "x"),
            lambda: chat.switch(0),
        ):
            with pytest.raises(InvalidInput):
                call()


def test_a_call_keeps_its_results(memory: Memory) -> None:
    chat = memory.chat("monday")
    calls = [ToolCall("c1", "look", {}), ToolCall("c2", "look", {})]
    chat.append(role="assistant", calls=calls)
    chat.append([{"role": "tool", "tool_call_id": f"c{n}", "content": "nothing"} for n in (1, 2)])
    chat.append(role="assistant", content="There is nothing.")
    for to in (9, 10):
        with pytest.raises(InvalidInput, match=r"Message 1[01] has the result of a tool call"):
            chat.rewind(to)
    for seq in (9, 10):
        with pytest.raises(InvalidInput, match="tool call"):
            chat.edit(seq, "something")
    chat.rewind(11)
    chat.rewind(8)
    assert seqs(memory) == [1, 2, 3, 4, 5, 6, 7, 8]
    # A result that comes after its call was taken back belongs to no call.
    late = chat.append({"role": "tool", "tool_call_id": "c1", "content": "too late"})
    assert late.answers == ()
    assert memory.verify().problems == ()


def test_an_id_of_a_call_may_be_used_on_each_branch(memory: Memory) -> None:
    chat = memory.chat("monday")
    for _ in range(2):
        chat.append(role="assistant", calls=ToolCall("c1", "look", {}))
        chat.append({"role": "tool", "tool_call_id": "c1", "content": "nothing"})
        chat.rewind(8)
    chat.append(role="assistant", calls=ToolCall("c1", "look", {}))
    chat.append(role="user", content="Stop.")
    chat.switch(12)
    chat.rewind(8)
    chat.switch(14)
    assert chat.append({"role": "tool", "tool_call_id": "c1", "content": "here"}).answers == ("c1",)
    assert memory.verify().problems == ()


# Editing, and trying again


def test_an_edited_message_takes_the_place_of_the_old_one(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="What of elks?", name="Ada", meta={"lang": "en"}, id="mine")
    new = chat.edit(9, "What of elms?")
    assert (new.seq, new.role, new.name, new.meta) == (10, "user", "Ada", {"lang": "en"})
    assert chat.history() == [*chat.history(branch=9)[:-1], new]
    with pytest.raises(InvalidInput, match="Message 9 is not on the current branch"):
        chat.edit(9, "again")
    with pytest.raises(InvalidInput):
        chat.edit(10, " ")
    assert seqs(memory) == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    first = chat.edit(1, "What of anvils?")
    assert chat.history() == [first]


def test_the_same_request_is_answered_again(memory: Memory) -> None:
    chat = memory.chat("monday")
    request = chat.regenerate()
    assert (request.seq, request.content, seqs(memory)) == (7, "What of dunes?", [1, 2, 3, 4, 5, 6, 7])
    assert chat.regenerate() == request, "where there is no answer, nothing changes"
    assert len(memory.changes(kind="branch")) == 1
    chat.append(role="assistant", content="Sand.")
    assert [branch.head for branch in chat.branches()] == [8, 9]


def test_a_message_of_another_branch_is_not_taken_for_one_that_is_there(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="Mine.", id="mine")
    chat.rewind(8)
    with pytest.raises(Conflict, match="on another branch"):
        chat.append(role="user", content="Mine.", id="mine")
    chat.switch(9)
    assert chat.append(role="user", content="Mine.", id="mine").seq == 9


# Branches


def test_branches_are_listed_read_and_made_current(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.rewind(4)
    tell(memory, "kites")
    chat.rewind(2)
    tell(memory, "lutes")
    listed = [(one.head, one.messages, one.shared, one.text, one.is_current) for one in chat.branches()]
    assert listed == [
        (8, 8, 4, "What of cellos?", False),
        (10, 6, 4, "What of kites?", False),
        (12, 4, 2, "What of lutes?", True),
    ]
    assert seqs(memory, branch=10) == [1, 2, 3, 4, 9, 10]
    assert [one.seq for one in chat.history(2, branch=10)] == [9, 10]
    assert [one.seq for one in chat.history(2, after=3, branch=10)] == [4, 9]
    assert [one.seq for one in chat.history(before=9, after=2, branch=10)] == [3, 4]
    chat.switch(chat.branches()[1])
    assert seqs(memory) == [1, 2, 3, 4, 9, 10]
    for wrong in (9, 99, -1, "x"):
        with pytest.raises(InvalidInput):
            chat.switch(wrong)  # type: ignore[arg-type]  # as it is called wrongly
    with pytest.raises(InvalidInput, match="another chat"):
        memory.chat("tuesday").switch(chat.branches()[0])


def test_a_credential_at_the_beginning_of_a_branch_is_masked(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.edit(7, "My key is ghp_16C7e42F292c6912E7710c838347Ae178B4a.")
    assert "ghp_16C7e42F292c6912E7710c838347Ae178B4a" not in repr(chat.branches())


# Undo, and the history of changes


def test_undo_takes_the_newest_change_back_whatever_it_was(memory: Memory) -> None:
    chat = memory.chat("monday")
    memory.remember("Plays the cello", "fact")
    chat.rewind(4)
    tell(memory, "kites")
    memory.remember("Lives in Kiel", "fact")
    assert [record.text for record in memory.undo()] == ["Lives in Kiel"]
    assert memory.undo() == []
    assert (seqs(memory), seqs(memory, branch=10)) == ([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 9, 10])
    assert [record.text for record in memory.undo()] == ["Plays the cello"]
    with pytest.raises(InvalidInput, match="nothing to undo"):
        memory.undo()


def test_every_way_to_another_branch_is_a_change(memory: Memory) -> None:
    chat = memory.scoped(agent="coach").chat("monday")
    chat.rewind(4)
    chat.edit(3, "What of beavers?")
    chat.regenerate()
    chat.switch(8)
    memory.undo()
    changes = memory.changes(kind="branch")
    assert [(one.action, one.before, one.after, one.why) for one in changes] == [
        ("undo", "monday#8", "monday#9", "of bra_3"),
        ("switch", "monday#9", "monday#8", ""),
        ("edit", "monday#4", "monday#2", ""),
        ("rewind", "monday#8", "monday#4", ""),
    ]
    assert {(one.kind, one.chat, one.version) for one in changes} == {("branch", "monday", 0)}
    assert memory.changes(id="bra_2") == [changes[2]]
    # That was done for no agent.
    assert [one.action for one in memory.scoped(agent="other").changes()] == ["undo"]
    with pytest.raises(InvalidInput, match="nothing to undo"):
        memory.scoped(agent="other").undo()


# What sees the current branch only


def test_a_summary_that_is_cut_falls_back_and_comes_back(memory: Memory) -> None:
    chat = memory.chat("monday")
    tell(memory, *TOPICS[4:])
    chat.compact(full=True, budget=300)
    before, tree = chat.window(4_000), chat.tree()
    assert before.summaries[0].depth
    chat.rewind(to=6)
    cut = chat.window(4_000)
    assert max((one.last for one in cut.summaries), default=0) <= 6
    shown = [
        message.seq for one in chat.tree() if not one.depth for message in chat.expand(one.id, 10**6).messages
    ]
    assert shown + [message.seq for message in cut.messages] == [1, 2, 3, 4, 5, 6]
    # What stands behind a summary of another branch can be read.
    away = [one for one in tree if one.last > 6 and one.id not in {one.id for one in chat.tree()}]
    assert [one.seq for one in chat.expand(away[0].id, 10**6).messages][-1] == away[0].last
    chat.switch(20)
    assert (chat.window(4_000), chat.tree()) == (before, tree)
    assert memory.verify().problems == ()


def test_recall_finds_the_current_branch_unless_all_are_asked_for(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.compact(full=True, budget=20)
    assert {hit.source for hit in memory.recall("beeches", sources=["message", "summary"])} == {
        "message",
        "summary",
    }
    chat.rewind(2)
    some: list[list[Source]] = [["message"], ["message", "summary"], ["summary"]]
    for sources in some:
        assert not any("beeches" in hit.text for hit in memory.recall("beeches", sources=sources))
        assert any("beeches" in hit.text for hit in memory.recall("beeches", sources=sources, branches=True))
    assert not any("beeches" in hit.text for hit in chat.search("beeches"))
    assert chat.search("beeches", regex=True) == []
    (hit, *_) = memory.recall("beeches", sources="message", branches=True)
    assert memory.explain("beeches", hit, branches=True).rank
    with pytest.raises(InvalidInput):
        memory.explain("beeches", hit)
    memory.undo()
    assert memory.recall("beeches")


def test_the_answer_of_a_question_is_that_of_the_branch(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append(role="user", content="Where do the quolls of the harbour live?")
    chat.append(role="assistant", content="In burrows.")
    chat.regenerate()
    chat.append(role="assistant", content="In hollow logs.")
    prompt = memory.chat("tuesday").prompt(8_000, "Where do the quolls of the harbour live?")
    assert "hollow logs" in str(prompt.messages) + prompt.system
    assert "burrows" not in str(prompt.messages) + prompt.system


def test_another_process_sees_a_rewind_at_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, user="ada") as one, Memory(path, user="ada") as other:
        tell(one, *TOPICS[:4])
        asked = "What of dunes?"
        assert other.recall("dunes")
        assert "dunes" in str(other.chat("monday").prompt(8_000, asked).messages)
        one.chat("monday").rewind(4)
        assert not any("dunes" in hit.text for hit in other.recall("dunes"))
        assert "dunes" not in str(other.chat("monday").prompt(8_000).messages)
        other.chat("monday").append(role="user", content="What of kites?")
        assert seqs(one) == seqs(other) == [1, 2, 3, 4, 9]


def test_only_the_current_branch_is_learned_from_and_what_comes_back_is() -> None:
    with Memory(":memory:", user="ada", learning=Learning(idle=timedelta(0))) as memory:
        chat = memory.chat("monday")
        chat.append(role="user", content="Remember that I live in Kiel.")
        chat.append(role="user", content="Remember that I play the cello.")
        chat.rewind(1)
        chat.end()
        memory.learning.work()
        assert "cello" not in str(memory.records())
        assert "Kiel" in str(memory.records())
        chat.switch(2)
        chat.end()
        memory.learning.work()
        assert "cello" in str(memory.records())
        assert str(memory.records()).count("Kiel") <= 2
        chat.rewind(0)
        chat.end()
        memory.learning.work()
        assert memory.verify().problems == ()


def test_what_comes_back_while_a_job_runs_is_learned_from_as_well() -> None:
    with Memory(":memory:", user="ada", learning=Learning(idle=timedelta(0))) as memory:
        chat, model, prompts = memory.chat("monday"), Model(), list[str]()

        def answer(prompt: str) -> str:
            prompts.append(prompt)
            if len(prompts) == 1:
                chat.switch(2)
            return model(prompt)

        chat.append(role="user", content="We moved the shop to Kiel, and it rains there.")
        chat.append(role="user", content="The cello is in the cellar, with the harp.")
        chat.rewind(1)
        chat.append(role="user", content="The dog of the shop is old and sleeps all day.")
        for _ in range(3):
            chat.end()
            memory.learning.work(llm=answer)
        assert "old and sleeps" in prompts[0]
        assert any("The cello" in prompt for prompt in prompts)
        assert memory.verify().problems == ()


def test_an_export_to_read_has_the_current_branch_and_an_archive_has_all(
    memory: Memory, tmp_path: Path
) -> None:
    chat = memory.chat("monday")
    older, path = tmp_path / "older.jsonl", tmp_path / "all.jsonl"
    with older.open("w") as file:
        export_everything(memory, file)
    chat.rewind(4)
    tell(memory, "kites")
    stream = io.StringIO()
    export_chats(memory, stream)
    assert "kites" in stream.getvalue()
    assert "dunes" not in stream.getvalue()
    with path.open("w") as file:
        export_everything(memory, file)
    with Memory(":memory:", user="eve") as empty, Memory(":memory:", user="eve") as filled:
        tell(filled, "something", chat="other")
        filled.chat("other").rewind(1)
        import_paths(filled, older)
        for copy in (empty, filled):
            assert import_paths(copy, path).problems == ()
            assert copy.chat("monday").history() == chat.history()
            assert [(one.head, one.is_current) for one in copy.chat("monday").branches()] == [
                (8, False),
                (10, True),
            ]
            assert not any("dunes" in hit.text for hit in copy.recall("dunes"))
            assert import_paths(copy, path).problems == ()
            assert copy.verify().problems == ()
            copy.undo()
            assert seqs(copy) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_backup_and_a_salvage_keep_the_branches(tmp_path: Path) -> None:
    from holdfast.port.safekeeping import salvage

    with Memory(tmp_path / "memory.db", user="ada") as memory:
        tell(memory, *TOPICS)
        memory.chat("monday").compact(full=True, budget=300)
        memory.chat("monday").rewind(4)
        tell(memory, "kites")
        memory.backup(tmp_path / "backup.db")
        expected = memory.chat("monday").branches(), memory.chat("monday").window(500)
    salvage(tmp_path / "backup.db", tmp_path / "saved.db")
    for name in ("backup.db", "saved.db"):
        with Memory(tmp_path / name, user="ada") as copy:
            assert copy.verify().problems == ()
            assert (copy.chat("monday").branches(), copy.chat("monday").window(500)) == expected


# Erasure


@pytest.mark.parametrize("messages", [(1, 2), (3, 4), (5, 8), (6, 6), (9, 10)])
def test_what_is_erased_of_a_branch_is_gone(memory: Memory, messages: tuple[int, int]) -> None:
    chat = memory.chat("monday")
    chat.compact(full=True, budget=20)
    chat.rewind(4)
    tell(memory, "kites")
    chat.compact(full=True, budget=20)
    memory.erase(chat="monday", messages=messages)
    gone = set(range(messages[0], messages[1] + 1))
    assert memory.verify().problems == ()
    assert seqs(memory) == [seq for seq in (1, 2, 3, 4, 9, 10) if seq not in gone]
    assert seqs(memory, branch=8) == [seq for seq in range(1, 9) if seq not in gone]
    assert chat.stats().messages + chat.stats().aside == 10 - len(gone)
    chat.switch(8)
    assert memory.verify().problems == ()
    memory.erase(chat="monday")
    tell(memory, "anew")
    assert (len(chat.branches()), memory.changes(kind="branch")) == (1, [])


# Processes


STEPS = """
import random, sys
from holdfast import Memory
with Memory(sys.argv[1], user="ada") as memory:
    chat, choice = memory.chat("monday"), random.Random(int(sys.argv[2]))
    print("ready", flush=True)
    if sys.argv[3] == "together":
        input()
    for step in range(int(sys.argv[4])):
        history = chat.history()
        what = choice.choice("append append append rewind edit switch compact undo".split())
        try:
            if what == "append" or not history:
                question = {"role": "user", "content": f"word{step} " * 30}
                chat.append([question, {"role": "assistant", "content": "yes"}])
            elif what == "rewind":
                chat.rewind(choice.choice(history).seq)
            elif what == "edit":
                chat.edit(choice.choice(history).seq, f"edited{step}")
            elif what == "switch":
                chat.switch(choice.choice(chat.branches()))
            elif what == "compact":
                chat.compact(full=True, budget=200)
            else:
                memory.undo()
        except Exception as error:
            if type(error).__name__ != "InvalidInput":
                raise
"""


def is_whole(memory: Memory) -> None:
    """Check that the window has the messages of the branch, and that every branch can be read."""
    chat = memory.chat("monday")
    assert memory.verify().problems == ()
    window = chat.window(10**9)
    covered = max((one.last for one in window.summaries), default=0)
    assert [m.seq for m in window.messages] == [seq for seq in seqs(memory) if seq > covered]
    assert sum(one.messages for one in window.summaries) == sum(seq <= covered for seq in seqs(memory))
    (current,) = [one for one in chat.branches() if one.is_current]
    assert chat.history() == chat.history(branch=current)
    assert all(len(chat.history(branch=one)) == one.messages for one in chat.branches())


@pytest.mark.slow
@pytest.mark.parametrize("place", ["file", "postgres"])
def test_processes_take_back_and_go_on_together(
    request: pytest.FixtureRequest, tmp_path: Path, place: str
) -> None:
    of_server = place == "postgres"
    location = str(request.getfixturevalue("postgres_url")) if of_server else str(tmp_path / "memory.db")
    run_together(STEPS, [(location, seed, "together", 40) for seed in range(3)])
    with Memory(location, user="ada") as memory:
        is_whole(memory)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["file", "postgres"])
def test_a_process_that_is_killed_leaves_the_old_branch_or_the_new(
    request: pytest.FixtureRequest, tmp_path: Path, place: str
) -> None:
    of_server = place == "postgres"
    location = str(request.getfixturevalue("postgres_url")) if of_server else str(tmp_path / "memory.db")
    choice = random.Random(5)
    for seed in range(4):
        program = start(STEPS, location, seed, "alone", 100_000)
        assert program.stdout is not None
        program.stdout.readline()
        time.sleep(choice.uniform(0.2, 1.5))
        program.send_signal(signal.SIGKILL)
        program.communicate()
        with Memory(location, user="ada") as memory:
            is_whole(memory)


def test_a_message_that_is_marked_wrongly_is_found(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "memory.db"
    with Memory(path, user="ada") as memory:
        tell(memory, *TOPICS[:4])
        memory.chat("monday").rewind(4)
    changes: Sequence[tuple[str, str]] = (
        ("UPDATE messages SET aside = 0 WHERE seq = 6", "monday#6 is marked as of another branch"),
        ("UPDATE messages SET aside = 1 WHERE seq = 2", "monday#2 is marked as of another branch"),
        ("UPDATE heads SET head = 3", "its branch 1 has another checksum"),
        ("UPDATE sessions SET aside = 3", "its row says 3 messages are aside"),
    )
    for number, (sql, problem) in enumerate(changes):
        copy = tmp_path / f"{number}.db"
        copy.write_bytes(path.read_bytes())
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute(sql)
        with Memory(copy, user="ada") as memory:
            assert problem in "\n".join(memory.verify().problems)
