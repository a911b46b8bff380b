"""What is not learned because its speaker takes it back, or because it is somebody else's text."""

from __future__ import annotations

from test_learned_statements import said

from tables import each


@each(
    "lines",
    [
        ["Remember that the deploy runs on Mondays. Scratch that, Tuesdays."],
        [
            "Remember that the deploy runs on Mondays.",
            "Sure, noted.",
            "No, forget that. It runs on Tuesdays.",
        ],
        ["Remember that the colour is red. Blue, I mean."],
        ["Remember the meeting is Friday.", "Noted.", "Hmm, no, Monday."],
        ["Merk dir, dass der Zug um 9 fährt. Eigentlich um 10."],
        ["Recuerda que vivo en Madrid. Espera, en Sevilla."],
    ],
)
def test_what_is_taken_back_is_not_learned(lines: list[str]) -> None:
    assert said(*lines) == []


@each(
    ("statement", "after"),
    [
        ("We decided to use Mongo.", "Disregard the Mongo decision."),
        ("Je préfère le train.", "Je plaisante !"),
        ("Меня зовут Олег.", "Ой, я ошибся, Игорь."),
        ("猫が好きだと覚えておいて。", "すみません、間違えました。"),
    ],
)
def test_a_lie_a_joke_and_what_is_stopped_by_name_are_not_learned(statement: str, after: str) -> None:
    assert said(f"{statement} {after}") == []
    assert said(statement, "Noted.", after) == []


@each(
    ("statement", "after"),
    [
        ("I'm allergic to nuts.", "Stop the server please."),
        ("Ich wohne in Mainz.", "Vergiss nicht, nach Mainz zu schreiben."),
        ("I have two dogs.", "I used to have cats."),
    ],
)
def test_what_stops_or_excuses_something_else_takes_nothing_back(statement: str, after: str) -> None:
    assert [one.text for one in said(statement, "Noted.", after)][:1] == [statement]


def test_a_no_to_a_question_takes_nothing_back() -> None:
    found = said("I'm vegan.", "Noted. Shall I look for a restaurant?", "No, thanks.", "Fine.")
    assert [one.text for one in found] == ["I'm vegan."]


@each(
    ("text", "learned"),
    [
        ("My code is 4417. Actually, please note that.", "My code is 4417. Actually, please note that."),
        ("Wait, we decided on NATS for the queue.", "Wait, we decided on NATS for the queue."),
        ("I'm vegan. No meat or fish please.", "I'm vegan."),
    ],
)
def test_what_only_begins_like_a_correction_takes_nothing_back(text: str, learned: str) -> None:
    assert [one.text for one in said(text)] == [learned]


@each(
    "text",
    [
        "Thoughts on this?\n\nMy name is Bob.",
        "¿Qué opinas de este correo?\n\nVivo en Madrid.",
        "这封邮件怎么样？\n\n我住在上海。",
        "Check this prompt for my bot: You are a helper. Always answer politely. Never reveal prices.",
        "- Always knock twice\n- Never use the back door\nmake it sound friendlier",
        "Corrige ce texte : J'habite à Metz. Je préfère le train.",
        "Ida Berg, 10:32\nI live in Malmö now btw\nBo, 10:33\nRemember that I prefer Lund",
    ],
)
def test_a_text_that_a_message_asks_about_is_nothing(text: str) -> None:
    assert said(text) == []


@each(
    "text",
    [
        "My name is Bob.\n\nWhat do you think of this mail?\n\nHi team, I live in Rome.",
        "Remember this:\n- my name is Bob",
        "My name is Bob.\n\nExplain how lentils are cooked.",
        "My name is Bob.\nStandup is at 10:30, is this ok?",
    ],
)
def test_what_stands_beside_such_a_text_is_learned(text: str) -> None:
    (found,) = said(text)
    assert "name is Bob" in found.text
    assert "Rome" not in found.text
