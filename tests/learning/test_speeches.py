from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from holdfast import Message, Role, ToolCall
from holdfast.learning.echo_match import restates, without_injected
from holdfast.learning.episode_text import compose
from holdfast.learning.external_sources import untrusted
from holdfast.learning.question import split_text
from holdfast.learning.speeches import is_courtesy, learned_statements, prose_of, shorten
from holdfast.text.tokens import estimate_tokens
from tables import each

ABOUT = "to keep the sessions of the shop in PostgreSQL from June on"


def found(*texts: str, role: Role = "user") -> list[str]:
    return [one.text for one in learned_statements([Message(role, text) for text in texts])]


# What is said


@each(
    ("role", "text"),
    [
        ("assistant", f"```\n# We decided {ABOUT}.\n```"),
        ("assistant", f"<think>We decided {ABOUT}.</think>"),
        ("assistant", f'<tool-use data-tool-type="read">We decided {ABOUT}.</tool-use>\nWe agreed {ABOUT}.'),
        ("tool", f"We decided {ABOUT}."),
        ("user", f"<system-reminder>Important: {ABOUT}.</system-reminder>"),
        ("user", f"This session is being continued from a previous conversation. We decided {ABOUT}."),
        ("user", "[Request interrupted by user]"),
        ("user", "/model opus"),
    ],
)
def test_code_reasoning_tools_and_what_a_program_wrote_say_nothing(role: Role, text: str) -> None:
    assert found(text, role=role) == []
    assert prose_of(Message(role, text)) == ""


# How it is written down


# For every text


def _called(text: str) -> list[Message]:
    call = ToolCall("c1", "Bash", {"command": text, "path": text, "patch": text})
    return [Message("user", text), Message("assistant", text, calls=(call,))]


READERS: tuple[Callable[[str], object], ...] = (
    without_injected,
    shorten,
    is_courtesy,
    lambda text: restates(text[:4_000], [text[:4_000], "x"]),  # which are compared
    lambda text: split_text(text, estimate_tokens, 4_000),
    lambda text: learned_statements(_called(text)),
    lambda text: untrusted(_called(text)),
    lambda text: compose(_called(text)),
)
HOSTILE = (
    *("not ", "a", "/a", "a.py ", "../", "\\", "**", "| ", "\n", "\n   ", ". ", "<", "。", "`", "[Image"),
    *("<memory>", "\n<memory>", "</memory>", "<a-", "<summary id=", "\n<system-reminder>", "let me ", "$("),
    *("We decided. ", "I will still ", ";a=", "-c '", "sudo ", "git clone ", "npx ", "python -c ", ";rsync "),
)


@pytest.mark.slow
@each(("read", "part"), product(READERS, HOSTILE))
def test_long_texts_of_one_part_are_read_in_linear_time(read: Callable[[str], object], part: str) -> None:
    read(f"{part * (50_000 // len(part))} x")
