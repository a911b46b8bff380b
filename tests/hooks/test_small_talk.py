"""Which prompts ask for nothing that one could remember."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast_cli.hooks.small_talk import asks_for_nothing
from tables import each

NOTHING = (
    "ok|OK, go on.|yes please|thanks a lot!|lgtm|continue|/clear|/compact keep the plan|!git status|"
    "2|yes, 3|👍|danke, weiter so|ja bitte|passt, mach weiter|gracias, sigue|sí|merci beaucoup|"
    "d'accord, continue|obrigado, pode continuar|grazie, va bene|bedankt, ga door|спасибо, продолжай|"
    "好的|继续|ありがとうございます|네|tamam, devam|   |…|no, not that|"
).split("|")
SOMETHING = (
    "fix the login|which database do we use?|/home/ada/app.py fails|/etc/hosts is wrong|deploy|"
    "ok, and the billing service?|warum schlägt der Test fehl?|¿qué base de datos usamos?|"
    "pourquoi le test échoue|数据库用什么|なぜテストが失敗する|Почему падает тест|yes, use PostgreSQL|# Plan|"
    "what about Berlin|error 500|no, the second invoice"
).split("|")


@each("prompt", NOTHING)
def test_small_talk_and_commands_ask_for_nothing(prompt: str) -> None:
    assert asks_for_nothing(prompt)


@each("prompt", SOMETHING)
def test_questions_and_requests_ask_for_something(prompt: str) -> None:
    assert not asks_for_nothing(prompt)


@given(st.text(max_size=600))
def test_any_text_is_told(prompt: str) -> None:
    assert asks_for_nothing(prompt) in (True, False)


def test_long_text_is_told_in_linear_time() -> None:
    assert not asks_for_nothing("ok " * 1_000_000)
    assert not asks_for_nothing("o'" * 1_000_000)
