"""A prompt is ranked by the part that asks; a message with a word of it stands above what is beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Memory
from recall_corpora import Said, found, tell
from soak import cases
from tables import each

pytest_plugins = ["recall_fixtures"]

CHATTER = (
    "Let's have lunch on Thursday.",
    "The weather was awful today.",
    "I finished the report for the client.",
    "My sister is visiting next week.",
    "The car needs new tyres.",
    "The train was late again.",
)
ANSWER = "My vet is Dr. Oyelaran on Mill Lane."
LOG = "\n".join(
    f"2026-05-0{n % 9 + 1} 10:00:00 WARN worker-{n} lost request {n * 37} of /srv/q{n}" for n in range(90)
)
TRACE = "Traceback (most recent call last):\n" + "\n".join(
    f'  File "/srv/app/part{n}.py", line {n}, in step_{n}\n    return self.call(job_{n}, state)'
    for n in range(70)
)


def told(memory: Memory, *texts: str) -> Memory:
    tell(memory, [Said("talk", text) for text in (*CHATTER[:3], *texts, *CHATTER[3:])])
    return memory


@each("paste", [LOG, TRACE, f"```\n{TRACE}\n```", "> " + LOG.replace("\n", "\n> ")])
@each("form", ["{paste}\n\n{question}", "{question}\n\n{paste}"])
def test_a_question_beside_a_paste_recalls_its_answer(
    spaces: Iterator[Memory], paste: str, form: str
) -> None:
    text = form.format(paste=paste, question="What is the name of my vet?")
    space = told(next(spaces), ANSWER)
    now = space.chat("now")
    now.append(role="user", content=text)
    assert ANSWER in found(now.prompt(20_000, text).hits)
    assert found(space.recall(text, chat="talk"))[0] == ANSWER


@each(
    "setting",
    [
        "Hi there, how are you today? The weather is awful and the train was late.",
        "Quick question for you:",
        "Guten Tag! Das Wetter ist schlecht.",
    ],
)
@each("form", ["{setting} Who is my vet?", "{setting}\nTell me who my vet is.", "{setting} who is my vet"])
def test_what_stands_around_a_question_does_not_hide_its_answer(
    spaces: Iterator[Memory], setting: str, form: str
) -> None:
    assert ANSWER in found(told(next(spaces), ANSWER).recall(form.format(setting=setting), limit=3))


def test_a_question_that_points_back_is_asked_with_what_stands_before_it(space: Memory) -> None:
    fix = "A pgbouncer timeout went away with server_reset_query."
    told(space, fix, "I fix bikes at the weekend.")
    assert found(space.recall("I have a pgbouncer timeout again. How do I fix it?"))[0] == fix


@each(
    ("text", "query"),
    [
        ("I'm left-handed.", "handed"),
        ("I am 57.", "57"),
        ("Grace is my aunt.", "aunt"),
        ("我吃素。", "吃素"),
    ],
)
def test_a_short_message_with_the_word_stands_above_its_neighbours(
    spaces: Iterator[Memory], text: str, query: str
) -> None:
    space = told(next(spaces), text)
    hits = space.recall(query)
    assert (hits[0].text, bool(hits[0].why.words)) == (text, True)
    assert found(space.recall(query, limit=1)) == [text]
    assert all(hits[0].score >= hit.score for hit in hits)


def test_a_lender_of_a_role_that_is_left_out_is_not_raised(space: Memory) -> None:
    tell(space, [Said("a", "Tromso.", "user"), Said("a", "And how is the weather there?", "assistant")])
    assert found(space.recall("Tromso", roles=["assistant"])) == ["And how is the weather there?"]


# Any prompt

MORE = cases(1, 10)


@pytest.mark.slow
@pytest.mark.scaled
@each(
    "query",
    [
        "12 34-" * 3_000 * MORE,
        "a? " * 3_000 * MORE,
        "b\u200b" * 5_000 * MORE,
        "\ud800" * 5_000 * MORE + "x",
        "kuberntes" * 1_200 * MORE,
        "1/2/2026 " * 1_200 * MORE,
        "99999999999999999999 days ago " * 300 * MORE,
        "please " * 1_500 * MORE + "tell me",
        "a?" + '"' * 10_000 * MORE + "x",
        "> a\n" * 2_500 * MORE,
        "電腦か。" * 2_000 * MORE,
    ],
)
def test_a_hostile_prompt_is_answered(spaces: Iterator[Memory], query: str) -> None:
    space = told(next(spaces), ANSWER)
    assert ANSWER in found(space.recall(f"{query}\nWho is my vet?", limit=50))
