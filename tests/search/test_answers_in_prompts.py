"""A question that is recalled for a prompt brings the answer that followed it, or gives way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdfast import Memory
from tables import each

START = datetime(2026, 5, 8, 9, tzinfo=UTC)
FILLER = [f"user: The ferry to Samso number {n} was late." for n in range(12)]
OTHER = "user: The vault has the port of each database."
ASKED = "user: Which port does the staging database listen on?"


def say(memory: Memory, chat: str, lines: list[str], hours: float = 0.01) -> None:
    """Append lines such as "user: Hello", `hours` apart; a speaker in capitals is a name of a user."""
    for n, line in enumerate(lines):
        speaker, _, text = line.partition(": ")
        role, name = ("user", speaker) if speaker.istitle() else (speaker, None)
        at = START + timedelta(hours=n * hours)
        memory.chat(chat).append(
            {"role": role, "content": text, "at": at, **({"name": name} if name else {})}
        )


def shown(memory: Memory, query: str, limit: int | None = None) -> list[str]:
    return [hit.text for hit in memory.chat("new").prompt(2_000, query=query, limit=limit).hits]


@each(
    ("lines", "answer", "hours"),
    [
        ([ASKED, "assistant: 5433, since the move."], "5433, since the move.", 0.01),
        ([ASKED, "assistant: 5433?"], "5433?", 0.01),
        (
            ["Ann: Which port does the staging database listen on?", "Bob: 5433, since the move."],
            "5433, since the move.",
            0.01,
        ),
        (
            [
                "assistant: I read the port of the staging database. Should I change it?",
                "user: Yes, to 5433.",
            ],
            "Yes, to 5433.",
            0.01,
        ),
        # Not an answer: of a tool, of the same person, after a pause, a courtesy between people, nothing.
        ([ASKED, "tool: exit 0"], None, 0.01),
        ([ASKED, "user: Hm."], None, 0.01),
        ([ASKED, "assistant: 5433, since the move."], None, 10),
        (["Ann: The port of the staging database is 5433. And you?", "Bob: I am well, thanks."], None, 0.01),
        ([ASKED], None, 0.01),
    ],
)
def test_a_question_brings_its_answer(lines: list[str], answer: str | None, hours: float) -> None:
    query = "the port of the staging database"
    question = lines[0].partition(": ")[2]
    with Memory(":memory:", user="ada") as memory:
        say(memory, "monday", lines, hours)
        say(memory, "tuesday", [OTHER])
        assert memory.recall(query)[0].text == question
        expected = answer or OTHER.partition(": ")[2]
        # The answer to nothing but a question comes first; without one the question gives way.
        is_bare = question.startswith("Which")
        assert shown(memory, query, 1) == [expected if is_bare else question]
        if answer or not is_bare:
            assert set(shown(memory, query, 2)) == {question, expected}


def test_an_answer_is_shown_once_and_only_to_whom_it_belongs(memory: Memory) -> None:
    said = "The staging database listens on port 5433."
    say(memory, "monday", [ASKED, f"assistant: {said}", ASKED, *FILLER])
    texts = shown(memory, "which port does the staging database listen on, the old one?")
    assert texts[0] == said
    assert ASKED.partition(": ")[2] in texts
    assert len(texts) == len(set(texts))
    say(
        memory.scoped(agent="coder"), "coding", ["user: Where are the kelp notes?", "assistant: In the loft."]
    )
    assert shown(memory.scoped(agent="coach"), "kelp notes") == []
    assert set(shown(memory, "kelp notes")[:2]) == {"In the loft.", "Where are the kelp notes?"}
