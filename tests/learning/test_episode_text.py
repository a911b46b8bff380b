from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coding_sessions import called
from holdfast import Message, ToolCall
from holdfast.learning import episode_text
from holdfast.learning.episode_text import Episode, compose
from holdfast.llm.json_answers import parse
from holdfast.llm.llm_request import Unreadable
from tables import each


def ran(command: str, result: str, seq: int) -> list[Message]:
    call = ToolCall(f"c{seq}", "Bash", {"command": command})
    return [
        Message("assistant", calls=(call,), seq=seq),
        Message("tool", result, call_id=call.id, seq=seq + 1),
    ]


REPORT = "The retries are in place, and all 42 tests of the client pass."


SESSION = [
    Message("user", "Please add retries to the client in src/shop/client.py."),
    called("Read", file_path="/home/ada/shop/src/shop/client.py"),
    called("Read", file_path="/home/ada/shop/README.md"),
    called("Edit", file_path="/home/ada/shop/src/shop/client.py", new_string="…"),
    Message("user", "yes"),
    Message(
        "assistant", "We decided on an exponential back-off of at most five tries. Let me run the tests."
    ),
    called("Bash", command="pytest tests/test_client.py"),
    Message("user", "Now document the retries in the changelog as well."),
    called("Edit", file_path="/home/ada/shop/CHANGELOG.md"),
    called("Bash", command="git diff"),
    Message("assistant", f"{REPORT} Let me know if you want anything else."),
    Message("user", "/exit"),
]


# How a session is told


def test_a_session_reads_as_prose() -> None:
    episode = compose(SESSION)
    assert episode == Episode(
        text=f"Outcome: {REPORT} Decided: We decided on an exponential back-off of at most five tries. "
        "Asked: Please add retries to the client in src/shop/client.py. "
        "Later: Now document the retries in the changelog as well. "
        "Files: src/shop/client.py, ada/shop/CHANGELOG.md, ada/shop/README.md, tests/test_client.py.",
        turns=3,
        files=("src/shop/client.py", "ada/shop/CHANGELOG.md", "ada/shop/README.md", "tests/test_client.py"),
        decisions=("We decided on an exponential back-off of at most five tries.",),
        outcome=REPORT,
    )


ORDERED = "Delete the row of the order, and flag it as removed"


@each(
    ("said", "asked"),
    [
        (
            ["Add retries to the client of the shop.", "Add retries to the client of the shop, please."],
            "Asked: Add retries to the client of the shop.",
        ),
        (
            ["Add retries to the client.", ORDERED, f"{ORDERED}; say so in the dialogue."],
            f"Asked: Add retries to the client. Later: {ORDERED}; say so in the dialogue.",
        ),
        (
            ["ada@box:~/shop$ make test\n/home/ada/shop/tests\n✗ 3 failed\nWhy do these tests fail?"],
            "Asked: Why do these tests fail?",
        ),
    ],
)
def test_what_was_asked_is_told_once_and_without_what_a_terminal_showed(said: list[str], asked: str) -> None:
    messages = [Message("user", text) for text in said]
    assert compose([*messages, Message("assistant", REPORT)]).text == f"Outcome: {REPORT} {asked}"


FINDING = "The root cause was that `pool.close()` was never awaited, so 40 connections leaked."


def test_what_was_found_and_what_ran_well_is_told() -> None:
    messages = [
        Message("user", "Why does the nightly job of the shop hang?", seq=1),
        *ran("pytest -q tests", "exit code 1: 3 failed", 2),
        *ran("make lint", "all is clean", 4),
        Message("assistant", FINDING, seq=6),
        *ran("cd shop && pytest -q tests | tail -3", "42 passed", 7),
        *ran("make lint", "error: unused import", 9),
        *ran("ls src", "client.py", 11),
        Message("assistant", REPORT, seq=13),
    ]
    text = compose(messages).text
    assert text.endswith(f"Found: {FINDING.replace('`', '')} Ran: pytest -q tests.")
    assert "pool.close" not in compose(messages, {6}).text
    assert "Ran: " not in compose(messages, {7, 8}).text


def test_what_the_last_report_leaves_is_told() -> None:
    report = f"{REPORT}\n\n- Not yet done: the retries of the mailer.\n\nShall I go on with that one?"
    messages = [Message("user", "Add retries to the client."), Message("assistant", report)]
    assert (
        f"Outcome: {REPORT} Left open: Not yet done: the retries of the mailer. Shall I go on with that one? "
        in compose(messages).text
    )


def test_what_was_begun_and_not_reported_is_left_open() -> None:
    messages = [
        Message("user", "Add retries to the client of the shop.", seq=1),
        Message("assistant", REPORT, seq=2),
        Message("user", "Now rename the mailer to post office everywhere.", seq=3),
        *ran("make mailer", "done", 4),
    ]
    assert compose(messages).text.startswith(
        f"Outcome: {REPORT} Left open: Now rename the mailer to post office everywhere. "
    )
    assert "Left open" not in compose(messages[:3]).text
    assert "mailer" not in compose(messages, {3, 4, 5}).text


@each(
    "text",
    [
        "[SUGGESTION MODE: Suggest what the user might type next.]\n\nReply with ONLY the suggestion.",
        "## Context\n\n- Current git status: On branch main\n- Current git diff: none\n\nMake one commit.",
        "Base directory for this skill: /home/ada/skills/chart\n\nAlways draw the bars first.",
        "<environment_context>\n<cwd>/home/ada/shop</cwd>\n</environment_context>",
    ],
)
def test_what_a_client_wrote_is_in_no_episode(text: str) -> None:
    asked, report = Message("user", "Mend the order form of the shop."), Message("assistant", REPORT)
    assert compose([asked, report, Message("user", text)]) == compose([asked, report])


# Files


def test_edited_files_come_first_and_strange_arguments_do_no_harm() -> None:
    messages = [
        called("Read", file_path="a.py"),
        called("Read", file_path="a.py"),
        called("apply_patch", input="*** Begin Patch\n*** Update File: b/Makefile\n+all:\n*** End Patch"),
        called("Bash", command=["cat", "/tmp/x.py", "c.toml"]),
        Message("assistant", calls=(ToolCall("1", "edit", "not json: a.py"),)),
        called("Read", file_path=None, path={"x": "a.py"}, paths=["d.py", 3, None]),
    ]
    assert compose(messages).files == ("b/Makefile", "a.py", "c.toml", "d.py")


# What a model is asked, and what it answers

DRAFT = compose(SESSION)


def answer(**parts: object) -> str:
    return json.dumps(
        {"summary": "Retries were added.", "files": [], "decisions": [], "outcome": "", **parts}
    )


def read(given: str, episode: Episode, transcript: str = "") -> Episode:
    return episode_text.read_episode(parse(given), episode, transcript)


def test_an_answer_takes_the_place_of_the_draft() -> None:
    given = answer(
        files=["src/shop/client.py", "docs/retry.md", "invented.py", "client.p"],
        decisions=["At most five tries, as the server is slow."],
        outcome="All tests pass.",
    )
    assert read(f"Here it is:\n```json\n{given}\n```", DRAFT, "it touched docs/retry.md") == Episode(
        text="Outcome: All tests pass. Decided: At most five tries, as the server is slow. "
        "Retries were added. Files: src/shop/client.py, docs/retry.md.",
        turns=3,
        files=("src/shop/client.py", "docs/retry.md"),
        decisions=("At most five tries, as the server is slow.",),
        outcome="All tests pass.",
    )


@each(
    "text",
    [
        "{}",
        '{"summary": "N/A"}',
        '{"summary": 5}',
        '{"summary": "…"}',
        '{"files": ["a.py"]}',
    ],
)
def test_an_answer_without_a_summary_cannot_be_read(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text, DRAFT)


# For every session

PARTS = (
    *(
        "We decided ",
        "word ",
        "a/b.py ",
        "\n",
        "# ",
        "| a |",
        "```\n",
        "`",
        ". ",
        "? ",
        "Let me ",
        "/x",
        "../",
    ),
    *("x" * 300, "語。", "<tool-use data-tool-type=", '"write" data-tool-name="Edit">', "</tool-use>"),
    *("[Image #1]", "$ curl "),
)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=15).map("".join)
MESSAGES = st.one_of(
    st.builds(lambda role, text: Message(role, f"{text}."), st.sampled_from(["user", "assistant"]), TEXTS),
    st.builds(lambda key, text: called("Bash", **{key: text}), st.sampled_from(["path", "command"]), TEXTS),
)


@pytest.mark.slow
@given(st.lists(MESSAGES, max_size=8))
def test_an_episode_is_bounded_one_line_and_the_same_each_time(messages: list[Message]) -> None:
    episode = compose(messages)
    assert episode == compose(messages)
    assert len(episode.text) <= 2_000
    assert "\n" not in episode.text
    assert len(episode.files) <= 8
    assert len(episode.decisions) <= 3
    assert len(set(episode.files)) == len(episode.files)
