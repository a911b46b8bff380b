from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Message, Role, ToolCall
from holdfast.learning.decision_sentences import Decision, decides, decisions, prose_of, shortened

ABOUT = "to keep the sessions of the shop in PostgreSQL from June on"


def found(*texts: str, role: Role = "user") -> list[str]:
    return [one.text for one in decisions([Message(role, text) for text in texts])]


# What is a decision


@pytest.mark.parametrize(
    "text",
    [
        f"We decided {ABOUT}.",
        f"AGREED, it is best {ABOUT}.",
        f"The conclusion is that it is best {ABOUT}.",
        f"It is important {ABOUT}.",
        f"Remember {ABOUT}, whatever the others say.",
        f"Please note that it is planned {ABOUT}.",
        f"The key insight: it is cheaper {ABOUT}.",
        f"We learned that it is cheaper {ABOUT}.",
        f"We will use the new cluster {ABOUT}.",
        f"We'll use the new cluster {ABOUT}.",
        f"You should use the new cluster {ABOUT}.",
        f"No, we decided {ABOUT}.",
        "Wir haben beschlossen, die Sitzungen ab Juni in PostgreSQL zu halten.",
        "Nous avons décidé de garder les sessions dans PostgreSQL dès juin.",
        "Al final decidimos guardar las sesiones en PostgreSQL desde junio.",
    ],
)
def test_a_sentence_with_a_trigger_word_is_found(text: str) -> None:
    assert found(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        f"She disagreed with the plan {ABOUT}.",
        f"An unimportant plan was {ABOUT}.",
        f"We remembered only later {ABOUT}.",
        f"It is not important {ABOUT}.",
        f"It isn't very important {ABOUT}.",
        f"We have not yet decided {ABOUT}.",
        f"We never agreed {ABOUT}.",
        f"I don't really remember the plan {ABOUT}.",
        f"I still remember the plan {ABOUT}.",
        f"Do you remember the plan {ABOUT}?",
        f"Have we decided {ABOUT}?",
        f"Now let me look at the important plan {ABOUT}.",
        f"I'll look first at what was decided, {ABOUT}.",
        f"The style `color: red !important` was not meant {ABOUT}.",
        f"Es ist nicht wichtig, und unwichtig ist auch, {ABOUT}.",
        "We decided so.",
    ],
)
def test_other_words_negations_questions_and_announcements_are_none(text: str) -> None:
    assert found(text) == []


def test_sentences_are_found_not_messages() -> None:
    text = f"Nice weather today. We decided {ABOUT}. See you tomorrow."
    assert decisions([Message("user", text, seq=7, name="Ada")]) == [
        Decision(f"We decided {ABOUT}.", 7, "Ada")
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"```\n# We decided {ABOUT}.\n```",
        f"<think>We decided {ABOUT}.</think>",
        (
            '<tool-use data-tool-type="read" data-tool-name="Read">'
            f"We decided {ABOUT}.</tool-use>\nWe agreed {ABOUT}."
        ),
    ],
)
def test_code_reasoning_and_rendered_tool_use_decide_nothing(text: str) -> None:
    assert found(text, role="assistant") == []


def test_tools_the_system_and_arguments_of_calls_decide_nothing() -> None:
    text = f"We decided {ABOUT}."
    call = ToolCall("c1", "note", {"text": text})
    messages = [
        Message("system", text),
        Message("assistant", calls=(call,)),
        Message("tool", text, call_id="c1"),
    ]
    assert decisions(messages) == []


@pytest.mark.parametrize(
    "text",
    [
        f"<system-reminder>Important: {ABOUT}.</system-reminder>",
        f"<local-command-caveat>Remember {ABOUT}.</local-command-caveat>",
        f"This session is being continued from a previous conversation. We decided {ABOUT}.",
        f"<recalled>\nWe decided {ABOUT}.\n</recalled>",
        "[Request interrupted by user]",
        "[Image #3]",
        "/exit",
        "/model opus",
    ],
)
def test_what_a_program_wrote_was_not_said(text: str) -> None:
    assert prose_of(Message("user", text)) == ""
    assert found(text) == []


def test_a_tag_that_nothing_closes_is_text_and_a_path_no_command() -> None:
    assert prose_of(Message("user", "<system-reminder>\nhello there")).endswith("hello there")
    assert prose_of(Message("user", "/srv/shop/main.py fails")) == "/srv/shop/main.py fails"


# How it is written down


def test_the_same_in_other_letters_is_one() -> None:
    assert found(f"We decided {ABOUT}.", f"we  DECIDED {ABOUT}!", f"- **We decided** {ABOUT}") == [
        f"We decided {ABOUT}."
    ]


def test_a_pronoun_takes_the_sentence_before_it_along() -> None:
    text = "The nightly job locks the orders table. This is important because the shop opens at six."
    assert found(text) == [text]


def test_a_pronoun_stands_alone_where_both_do_not_fit() -> None:
    last = "This is important because the shop opens at six in the morning."
    assert found(f"{'word, ' * 400}end. {last}") == [last]


def test_a_long_sentence_is_whole_up_to_2000_characters_and_cut_on_a_word() -> None:
    assert found(f"We decided {'to go on, ' * 100}as ever.") == [f"We decided {'to go on, ' * 100}as ever."]
    (cut,) = found(f"We decided {'to go on and ' * 400}as ever.")
    assert 1_900 < len(cut) <= 2_000
    assert cut.endswith(("to...", "go...", "on...", "and..."))


# The closing note

REPORT = (
    "I moved the sessions to PostgreSQL and took the old table away. "
    "All 214 tests pass, and the job takes a second."
)


def test_the_last_report_of_the_assistant_closes() -> None:
    messages = [
        Message("user", "Go", seq=1),
        Message("assistant", REPORT, seq=2),
        Message("assistant", "Let me know if you have any questions. " * 5, seq=3),
        Message("user", "Thanks! " * 20, seq=4),
    ]
    assert decisions(messages) == [Decision(REPORT, 2, "assistant")]


def test_a_short_last_word_and_one_that_is_said_already_do_not_close() -> None:
    assert found("All tests pass.", role="assistant") == []
    assert found(f"We decided {ABOUT}, since the old server is too small for it.", role="assistant") == [
        f"We decided {ABOUT}, since the old server is too small for it."
    ]


def test_a_long_closing_note_is_cut() -> None:
    (note,) = found(f"{REPORT} " * 40, role="assistant")
    assert len(note) <= 2_000
    assert note.endswith("away...")


# For every text

PARTS = st.sampled_from(
    [
        "We decided ",
        "remember ",
        "not ",
        "important",
        "…",
        ". ",
        "? ",
        "\n- ",
        "```\n",
        "`",
        "<think>",
        "</think>",
        "**",
        "<tool-use>",
        "word " * 30,
        "x" * 450,
        "It ",
        "agreed. ",
        "决定。",
        "<system-reminder>",
        "[Image #1]",
    ]
)


def test_a_short_decision_in_a_longer_message_counts() -> None:
    said = "I looked at both of them this morning. We decided to use OAuth2. The rest can wait until Monday."
    assert [one.text for one in decisions([Message("user", said, seq=1)])] == ["We decided to use OAuth2."]
    for short in (
        "We decided to use OAuth2.",
        f"{'It went on and on for hours. ' * 3}Agreed. That is important.",
    ):
        assert decisions([Message("user", short, seq=1)]) == []


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant"]), st.lists(PARTS, max_size=12).map("".join)),
        max_size=5,
    )
)
def test_what_is_found_is_bounded_single_and_the_same_each_time(spoken: list[tuple[Role, str]]) -> None:
    messages = [Message(role, text, seq=n) for n, (role, text) in enumerate(spoken, 1) if text.strip()]
    result = decisions(messages)
    assert result == decisions(messages)
    assert all(len(one.text) <= 2_000 and "\n" not in one.text for one in result)
    assert len({one.text.casefold() for one in result}) == len(result)
    assert all(1 <= one.seq <= len(spoken) for one in result)


@pytest.mark.parametrize(
    "part",
    [
        "decided ",
        "not ",
        "\n<system-reminder>",
        "[Image",
        "`",
        "I will still ",
        "x",
        "…",
        "We decided. ",
        "let me ",
    ],
)
def test_long_texts_of_one_part_are_read_in_linear_time(part: str) -> None:
    text = part * (200_000 // len(part))
    decisions([Message("user", text), Message("assistant", text)])
    decides(text)
    assert len(shortened(text)) <= 2_000
