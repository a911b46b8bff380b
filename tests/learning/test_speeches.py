from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Message, Role, ToolCall
from holdfast.learning.speeches import (
    is_courtesy,
    is_next_step,
    learned_statements,
    prose_of,
    shorten,
    speeches_of,
)
from tables import each

ABOUT = "to keep the sessions of the shop in PostgreSQL from June on"


def found(*texts: str, role: Role = "user") -> list[str]:
    return [one.text for one in learned_statements([Message(role, text) for text in texts])]


# What is said


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
def test_code_reasoning_and_rendered_tool_use_say_nothing(text: str) -> None:
    assert found(text, role="assistant") == []


def test_tools_the_system_and_arguments_of_calls_say_nothing() -> None:
    text = f"We decided {ABOUT}."
    messages = [
        Message("system", text),
        Message("assistant", calls=(ToolCall("c1", "note", {"text": text}),)),
        Message("tool", text, call_id="c1"),
    ]
    assert [one.prose for one in speeches_of(messages)] == ["", "", ""]
    assert learned_statements(messages) == []


@each(
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


def test_courtesy_and_next_steps_are_told_from_what_is_said() -> None:
    assert is_courtesy("Thanks, that helps a lot.")
    assert not is_courtesy("The thanks go to Ada.")
    assert is_next_step("Now let me look at the important plan.")
    assert is_next_step("I'll look first at what was decided.")
    assert not is_next_step("Let me know what you think.")
    assert not is_next_step(f"We decided {ABOUT}.")


# How it is written down


@each(
    "text",
    [
        f"We decided {ABOUT}.",
        f"The conclusion is that it is best {ABOUT}.",
        f"Please note that it is planned {ABOUT}.",
        f"The key insight: it is cheaper {ABOUT}.",
        f"We will use the new cluster {ABOUT}.",
        f"No, we decided {ABOUT}.",
        "Wir haben beschlossen, die Sitzungen ab Juni in PostgreSQL zu halten.",
        "Nous avons décidé de garder les sessions dans PostgreSQL dès juin.",
        "Al final decidimos guardar las sesiones en PostgreSQL desde junio.",
    ],
)
def test_a_decision_is_found_word_for_word(text: str) -> None:
    assert found(text) == [text]


@each(
    "text",
    [
        f"She disagreed with the plan {ABOUT}.",
        f"It is not important {ABOUT}.",
        f"I still remember the plan {ABOUT}.",
        f"Have we decided {ABOUT}?",
        f"I'll look first at what was decided, {ABOUT}.",
        f"The style `color: red !important` was not meant {ABOUT}.",
        "We decided so.",
    ],
)
def test_other_words_questions_and_announcements_decide_nothing(text: str) -> None:
    assert found(text) == []


def test_the_same_in_other_letters_is_one() -> None:
    assert found(f"We decided {ABOUT}.", f"we  DECIDED {ABOUT}!", f"- **We decided** {ABOUT}") == [
        f"We decided {ABOUT}."
    ]


def test_a_long_text_is_cut_on_a_word() -> None:
    assert shorten(f"We decided {'to go on, ' * 100}as ever.") == f"We decided {'to go on, ' * 100}as ever."
    cut = shorten(f"We decided {'to go on and ' * 400}as ever.")
    assert 1_900 < len(cut) <= 2_000
    assert cut.endswith(("to...", "go...", "on...", "and..."))


# For every text

PARTS = st.sampled_from(
    [
        "We decided ", "remember ", "not ", "important", "…", ". ", "? ", "\n- ", "```\n", "`", "<think>",
        "</think>", "**", "<tool-use>", "word " * 30, "x" * 450, "It ", "agreed. ", "决定。",
        "<system-reminder>", "[Image #1]",
    ]
)  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant"]), st.lists(PARTS, max_size=12).map("".join)),
        max_size=5,
    )
)
def test_what_is_found_is_bounded_single_and_the_same_each_time(spoken: list[tuple[Role, str]]) -> None:
    messages = [Message(role, text, seq=n) for n, (role, text) in enumerate(spoken, 1) if text.strip()]
    result = learned_statements(messages)
    assert result == learned_statements(messages)
    assert all(len(one.text) <= 2_000 and "\n" not in one.text for one in result)
    assert len({one.text.casefold() for one in result}) == len(result)
    assert all(1 <= one.messages[0] <= one.messages[1] <= len(spoken) for one in result)


@pytest.mark.slow
@each(
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
    learned_statements([Message("user", text), Message("assistant", text)])
    assert not is_courtesy(text)
    assert len(shorten(text)) <= 2_000
