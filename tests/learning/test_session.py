"""One question about a session: what is asked, what its parts rest on, and that all are stored at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from holdfast import Kind, Learning, Limit, Memory, Message, Record, ToolCall
from learning_scripts import SESSION, Clock, Model, framed, hold, says

THREE = ("observe", "episode", "reflect")
POLICY = Learning(kinds=THREE)
LIKES = "I live in Lisbon, and I prefer short answers without any tables."


def item(text: str, message: int, quote: str, **more: str) -> dict[str, object]:
    return {"text": text, "message": message, "quote": quote, **more}


def answer(**parts: object) -> dict[str, object]:
    """Make a whole answer, with some parts."""
    told = {"summary": "The sessions of the shop were moved.", "files": [], "decisions": [], "outcome": ""}
    lists: Mapping[str, list[object]] = {name: [] for name in ("findings", "insights", "lessons", "facts")}
    return {**lists, "episode": told, "profile": [], **parts}


@pytest.fixture
def quick(clock: Clock) -> Iterator[Memory]:
    """Open a memory that learns what one question is asked about."""
    with Memory(":memory:", user="ada", clock=clock, learning=POLICY) as opened:
        yield opened


def answering(**parts: object) -> Model:
    return Model({"session": lambda _: answer(**parts)})


def change(text: str, message: int = 7, quote: str = LIKES, replaces: str = "") -> dict[str, object]:
    return item(text, message, quote, replaces=replaces)


def only(memory: Memory, kind: str) -> Record:
    (found,) = memory.records(kind=kind)
    return found


@pytest.fixture
def said(memory: Memory) -> Memory:
    """Open a memory with a session in which the user says something of themselves."""
    hold(memory, texts=(*SESSION, LIKES, "Understood.")).end()
    return memory


def test_a_session_is_asked_about_once(said: Memory) -> None:
    model = answering(
        findings=[item("The sessions are in PostgreSQL.", 3, SESSION[2][:40])],
        facts=[item("The user lives in Lisbon.", 7, "I live in Lisbon", target="user")],
        profile=[change("The user prefers short answers without tables.")],
    )
    result = said.learning.work(llm=model)
    assert [purpose for purpose, _ in model.prompts] == ["session"]
    assert sorted(job.kind for job in result.done) == ["episode", "observe", "reflect"]
    assert (only(said, "finding").messages, only(said, "finding").meta["speaker"]) == ((3, 3), "user")
    assert (only(said, "fact").text, only(said, "fact").target) == ("The user lives in Lisbon.", "user")
    assert " The sessions of the shop were moved. Files: " in only(said, "episode").text
    assert only(said, "profile").text == "The user prefers short answers without tables."
    assert only(said, "profile").meta["quotes"] == [LIKES]
    assert {one.meta["learned"] for one in said.records()} == {"session v1"}
    said.chat("shop").end()
    assert said.learning.work(llm=model).calls == 0
    assert said.verify().ok
    said.undo(by="user")
    assert said.records() == [], "all parts are one change"


def test_what_an_answer_leaves_out_is_asked_by_its_own_job(quick: Memory) -> None:
    whole = answer()
    del whole["episode"], whole["profile"]
    hold(quick).end()
    model = Model({"session": lambda _: whole})
    quick.learning.work(llm=model)
    assert [purpose for purpose, _ in model.prompts] == ["session", "episode", "reflect"]


def test_what_a_model_cannot_answer_is_asked_in_parts(quick: Memory, clock: Clock) -> None:
    hold(quick).end()
    model = Model({"session": says("I would rather not.")})
    (job,) = quick.learning.work(llm=model).postponed
    assert (job.kind, job.reason) == ("observe", "answer")
    clock.move(minutes=2)
    quick.learning.work(llm=model)
    asked = [purpose for purpose, _ in model.prompts]
    assert asked[:2] == ["session", "session"]
    assert sorted(asked[2:]) == ["episode", "observe", "reflect"]


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (Learning(tokens=100, kinds=THREE), {"session": 2}),
        (Learning(kinds=("observe", "episode")), {"session": 1}),
        (Learning(kinds=THREE, limits={"reflect": Limit(calls=5)}), {"session": 1, "reflect": 1}),
        (Learning(kinds=THREE, limits={"observe": Limit(calls=5)}), dict.fromkeys(THREE, 1)),
    ],
    ids=["too long", "not all", "own limit", "own limit of all"],
)
def test_a_job_asks_for_all_that_has_no_limit_of_its_own(policy: Learning, asked: dict[str, int]) -> None:
    with Memory(":memory:", user="ada", learning=policy) as memory:
        hold(memory).end()
        model = Model()
        memory.learning.work(llm=model)
        assert Counter(purpose for purpose, _ in model.prompts) == asked
        assert len(memory.records(kind="episode")) == 1


def test_what_is_wished_for_and_instructed_stands_in_it() -> None:
    wish = Kind("allergy", learn="what the person is allergic to")
    policy = Learning(instructions="Nothing about pets.")
    with Memory(":memory:", user="ada", kinds=[wish], learning=policy) as memory:
        hold(memory, texts=(*SESSION, "I am allergic to walnuts.", "Noted.")).end()
        model = answering(allergy=[item("The user is allergic to walnuts.", 7, "allergic to walnuts")])
        memory.learning.work(llm=model)
        assert "Nothing about pets." in model.asked("session")[0]
        assert only(memory, "allergy").text == "The user is allergic to walnuts."


def test_what_is_cut_of_tool_output_is_stated(quick: Memory) -> None:
    chat = hold(quick)
    call = ToolCall("1", "Bash", {"command": "make test"})
    chat.append([Message("assistant", calls=(call,)), Message("tool", "line of output\n" * 200, call_id="1")])
    chat.end()
    result = quick.learning.work(llm=(model := Model()))
    stated = "calls and results of tools are shown: 2,"
    assert stated in framed(model.prompts[0][1], "conversation").splitlines()[0]
    assert any(stated in note for note in result.notes)


def test_two_workers_do_not_ask_apart_what_is_asked_at_once(quick: Memory) -> None:
    """Another worker begins while a model is asked about all of a session."""
    hold(quick).end()
    other = Model()

    def meanwhile(_: str) -> object:
        assert quick.learning.work(llm=other).noop
        return answer()

    quick.learning.work(llm=Model({"session": meanwhile}))
    assert other.prompts == []
