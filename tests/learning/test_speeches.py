from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from holdfast import Message, ToolCall
from holdfast.learning.echo_match import restates, without_injected
from holdfast.learning.episode_text import compose
from holdfast.learning.external_sources import untrusted
from holdfast.learning.question import split_text
from holdfast.learning.speeches import is_courtesy, learned_statements, shorten
from holdfast.text.tokens import estimate_tokens
from tables import each

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
