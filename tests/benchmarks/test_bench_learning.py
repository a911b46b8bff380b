"""The benchmark of learning on a few messages: it runs and reports. Also its model, which other tests use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks import beside, learning
from benchmarks.__main__ import app
from benchmarks.beside import LearningPlan
from benchmarks.measurement import COLUMNS
from benchmarks.scripted import OBSERVATIONS, Line, Scripted, lines
from holdfast import Memory, Message, Record
from holdfast.errors import InvalidInput
from holdfast.learning import extraction_prompt, observations, ranking
from holdfast.llm.prompt_files import load
from holdfast.text.tokens import estimate_tokens

TINY = LearningPlan(rounds=1, block=2, calm=1, pause=0.001, wait=0.01, settling=2)
SAID = [
    ("user", "We decided to keep the settings of the billing worker in deploy/billing.toml."),
    ("assistant", "The migration failed because the lock table had no index on its second column."),
    ("user", "Thanks. The customer in Lisbon should get their invoices before the fifth of May."),
    ("assistant", "The nightly export now writes <4 GB> of files & takes eleven minutes in all."),
    ("user", "Please remember that the staging cluster is rebuilt every Sunday evening."),
    ("assistant", "All of the tests of the importer pass since the time zone is fixed in src/io/clock.py."),
]
CHAT = [
    Message("user" if role == "user" else "assistant", text, seq=n) for n, (role, text) in enumerate(SAID, 1)
]


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Write two sessions."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, said in (("monday", SAID), ("tuesday", SAID[:3])):
        rows = (json.dumps({"role": role, "content": text}) for role, text in said)
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    return folder


@pytest.fixture
def memory() -> Any:
    with Memory(":memory:") as opened:
        yield opened


# The measurements


@pytest.mark.slow
def test_report_names_everything_that_was_asked_for(sessions: Path, tmp_path: Path) -> None:
    told: list[str] = []
    place = tmp_path / "place"
    place.mkdir()
    report = learning.run([sessions], plan=TINY, folder=place, progress=told.append)
    numbers: Any = report.to_json()
    json.dumps(numbers)
    names = [one["name"] for one in numbers["measurements"]]
    for worker in list(beside.workers(Path(), TINY))[1:]:
        for pace in ("back to back", "every 0.001 s"):
            for figure in ("median", "p95", "mean"):
                assert f"append {pace}, worker with {worker}, {figure}" in names
    assert {"jobs with a model", "messages without a model"} < set(names)
    assert (numbers["sessions"], numbers["messages"]) == (2, 9)
    assert numbers["missed"] == [one["name"] for one in numbers["measurements"] if one["ok"] is False]
    assert told[0] == "importing the sessions"
    assert list(place.iterdir()) == []
    for table in report.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert report.tables()[0].columns == COLUMNS


def test_what_is_learned_twice_is_stored_once(sessions: Path) -> None:
    numbers: Any = learning.run([sessions], only=["learn"]).to_json()
    by_name = {one["name"]: one for one in numbers["measurements"]}
    for how in ("without a model", "with a model"):
        records = by_name[f"records more, learning {how} once more"]
        assert (records["value"], records["ok"]) == (0, True)
        assert records["against_value"] > 0
        assert by_name[f"changes of records, learning {how} once more"]["value"] == 0
        assert by_name[f"jobs that failed {how}"]["ok"]
        assert by_name[f"jobs that failed {how} once more"]["ok"]
        calls = by_name[f"calls of the model, learning {how} once more"]["value"]
        assert (calls > 0) == (how == "with a model")
    assert by_name["records more, learning with a model once more, in other words"]["ok"] is None


def test_what_models_are_asked_is_summed_up_for_a_thousand_messages(sessions: Path) -> None:
    numbers: Any = learning.run([sessions], only=["learn"]).to_json()
    asked = numbers["asked_per_1000_messages"]
    assert {"observe", "all"} <= asked.keys()
    assert asked["observe"]["calls"] == pytest.approx(1_000 * 2 / 9)
    for figure in ("calls", "prompt_tokens", "answer_tokens"):
        parts = sum(sums[figure] for name, sums in asked.items() if name != "all")
        assert asked["all"][figure] == pytest.approx(parts)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InvalidInput, match="None of these files has messages"):
        learning.run([tmp_path])


def test_a_worker_that_fails_is_told_of(
    memory: Memory, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CalledProcessError), beside._elsewhere(tmp_path, memory, "ben"):
        pass
    assert "Unavailable" in capfd.readouterr().err


@pytest.mark.slow
def test_the_command_prints_tables_or_json(sessions: Path) -> None:
    asked = ["learn", str(sessions), "--only", "learn"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0
    assert "Learning from 2 sessions with 9 messages" in result.output
    assert "What models are asked for every 1,000 messages" in result.output
    assert json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)["messages"] == 9
    assert CliRunner().invoke(app, ["learn", str(sessions), "--only", "x"]).exit_code == 2


# The model


def whole(messages: Sequence[Message]) -> extraction_prompt.TranscriptPart:
    (part,) = extraction_prompt.split_messages(messages, estimate_tokens, 100_000)
    return part


def observed(model: Scripted, messages: Sequence[Message] = CHAT) -> observations.ReadObservations:
    asked = extraction_prompt.request(whole(messages), load("observe"), step="monday", type="session")
    return observations.read(model(asked.prompt), whole(messages), messages)


def test_observations_quote_the_messages_they_come_from() -> None:
    reading = observed(Scripted())
    assert reading.dropped == {}
    assert {one.text for one in reading.observations} == {text for _, text in SAID} - {SAID[2][1]} | {
        SAID[2][1].removeprefix("Thanks. ")
    }
    for one in reading.observations:
        assert one.messages is not None
        said = CHAT[one.messages[0] - 1]
        assert one.quote
        assert one.quote in said.content
        assert one.speaker == said.role
    assert {one.kind for one in reading.observations} == {"finding", "insight", "lesson"}


def test_the_same_question_has_the_same_answer_and_other_words_are_others() -> None:
    assert observed(Scripted()) == observed(Scripted())
    texts, others = (
        {one.text for one in observed(model).observations} for model in (Scripted(), Scripted(otherwise=True))
    )
    assert len(texts) == len(others)
    assert texts != others


def test_there_are_no_more_observations_than_models_make() -> None:
    many = [
        Message("user", f"The worker number {n} of the queue runs on port {n} in Lisbon.", seq=n)
        for n in range(1, 30)
    ]
    assert len(observed(Scripted(), many).observations) == OBSERVATIONS


def test_transcripts_of_all_kinds_are_read() -> None:
    text = "It began with\n    a & b: <c>"
    assert lines("[4] user (Ada), 2026-01-02 12:00: It began with\n    a &amp; b: &lt;c&gt;") == [
        Line(4, "user", text)
    ]
    assert lines("What was said.\n#7 [2026-01-02 12:00 | user] Hello: there") == [
        Line(7, "user", "Hello: there")
    ]
    assert lines("[user] One\n[2026-01-02 12:00 | tool] Two") == [
        Line(0, "user", "One\n"),
        Line(0, "tool", "Two"),
    ]
    assert lines("No message.\n    At all.") == [Line(0, "", "No message.\n    At all.")]


def test_every_kind_of_job_is_answered(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.append([{"role": role, "content": text} for role, text in SAID])
    chat.end()
    done = memory.learning.work(llm=Scripted())
    assert (done.postponed, done.failed) == ((), ())
    assert done.calls == 1
    assert {record.kind for record in done.records} >= {"finding", "insight", "lesson", "episode", "profile"}
    assert all(line.outcome == "answered" for line in memory.learning.usage().lines)
    assert "deploy/billing.toml" in str(memory.records(kind="episode")[0].meta["files"])
    assert memory.learning.work(llm=Scripted()).records == ()


def test_a_text_is_learned_from(memory: Memory) -> None:
    found = memory.learning.extract(SAID[1][1], step="migrate", type="GOAL", llm=Scripted())
    assert [(record.text, record.source) for record in found.lessons] == [(SAID[1][1], "GOAL:migrate")]


def test_facts_are_joined(memory: Memory) -> None:
    for text in ("The user lives in Lisbon", "The user lives in Lisbon and works as a baker"):
        memory.remember(text, by="agent", merge=False)
    memory.remember("The user plays chess", by="agent", merge=False)
    done = memory.learning.consolidate(llm=Scripted())
    assert (done.postponed, done.failed) == ((), ())
    assert sorted(record.text for record in memory.records(kind="fact")) == [
        "The user lives in Lisbon and works as a baker",
        "The user plays chess",
    ]


@pytest.mark.parametrize(
    ("new", "verdict"),
    [("The export of the billing worker takes 11 minutes", "same"), ("Ada plays chess on Sunday", "both")],
)
def test_pairs_are_judged_by_their_words(new: str, verdict: str) -> None:
    pairs = (
        "Pair 1: two of the kind finding\n- old [from reflect] The export of the billing worker takes\n"
        f"    11 minutes now\n- new [2026-01-02, from agent] {new}"
    )
    (judged,) = json.loads(Scripted()(load("judge").fill(pairs=pairs)))["verdicts"]
    assert (judged["pair"], judged["verdict"]) == (1, verdict)


def test_episodes_are_ranked() -> None:
    shown = [Record(str(n), "episode", f"Session {n} went well.") for n in range(2)]
    asked = ranking.request(shown, "what went well?", 5, load("rank"))
    assert ranking.read(Scripted()(asked.prompt), shown) == shown


def test_what_the_script_does_not_know_is_an_error() -> None:
    with pytest.raises(LookupError):
        Scripted()("Tell me a story.")
