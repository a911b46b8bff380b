"""What is found though it is written otherwise: in another form, with a slip, shortened or joined."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Memory
from recall_corpora import Said, found, tell
from tables import each

pytest_plugins = ["recall_fixtures"]

OTHERS = (
    "Let's have lunch on Thursday.",
    "I finished the report for the client.",
    "My sister is visiting next week.",
    "The car needs new tyres.",
)
FORMS = [
    ("de", "Die Gärten sind klein.", "Garten"),
    ("es", "Compré tres camisas ayer.", "camisa"),
    ("fr", "Nous travaillons à Nice.", "travailler"),
    ("nl", "De boeken zijn niet van mij.", "boek"),
    ("da", "Jeg har to hunde.", "hund"),
    ("pl", "Kupiłem nowy rower w Gdańsku.", "roweru"),
    ("ru", "Я читаю интересную книгу.", "книга"),
    ("el", "Έχω δύο γάτες.", "γάτα"),
    ("ar", "قرأت الكتاب أمس", "كتاب"),
    ("zh", "我喜歡讀書。", "喜欢读书"),
    ("hi", "मैंने किताबें खरीदीं।", "किताब"),
]
IDENTIFIERS = [
    ("Revert 9be03ac7d1f4 tonight.", "9be03ac"),
    ("Revert 9be03ac tonight.", "9be03ac7d1f4aa"),
    ("Ring Tove at 040 / 77 12 34.", "040771234"),
    ("Ring +44 20 7946 0958 at noon.", "+442079460958"),
    ("We moved to NoSQL storage.", "no-sql"),
    ("The TCP/IP stack hangs.", "TCPIP"),
    ("Kept in Fried\u200brichs\u200bhain.", "Friedrichshain"),
]
SLIPS = [
    ("We deploy with Terraform.", "Teraform"),  # one missing
    ("We deploy with Terraform.", "Terraforrm"),  # one too many
    ("The plumber is called Ottokar.", "Ottakar"),  # another one
    ("The Postgres replica lags.", "Posgtres"),  # exchanged
    ("Her allergologist moved.", "alergologyst"),  # two in a long word
    ("Я живу в Екатеринбурге.", "Екатиринбурге"),
]
NO_SLIPS = [
    ("My contract ended.", "contact"),
    ("The desert was dry.", "dessert"),
    ("The angel sang.", "angle"),
    ("I live in Bonn.", "Bohn"),  # too short
    ("Met Anna.", "Hannah"),  # another beginning
    ("Ottokar came.", "Ottekir"),  # two in a short word
    ("Ticket 1234567.", "1234568"),  # no letters
    ("Revert 9be03ac tonight.", "9be03ad1"),
    ("Ring 040771234.", "040 77 12 35"),
]


def among(memory: Memory, text: str) -> Memory:
    """Say something in the middle of a talk about other things."""
    tell(memory, [Said("talk", other) for other in (*OTHERS[:2], text, *OTHERS[2:])])
    return memory


def test_a_message_and_a_record_are_found_in_another_form(space: Memory) -> None:
    among(space, "Я читаю интересную книгу.").remember("Мы живём в Казани.", "finding")
    assert found(space.recall("книга"))[0] == "Я читаю интересную книгу."
    assert found(space.recall("Казань")) == ["Мы живём в Казани."]


@each(("language", "text", "query"), FORMS)
def test_a_word_is_found_in_another_form(
    spaces: Iterator[Memory], language: str, text: str, query: str
) -> None:
    assert found(among(next(spaces), text).recall(query))[:1] == [text]


def test_the_word_as_it_is_written_comes_before_another_form(spaces: Iterator[Memory]) -> None:
    space = next(spaces)
    tell(space, [Said("a", "Das sind die Katzen der Stadt."), Said("b", "Das ist die Katze der Stadt.")])
    assert [hit.chat for hit in space.recall("Katze")] == ["b", "a"]


@each(("text", "query"), IDENTIFIERS)
def test_an_identifier_is_found_as_it_is_also_written(
    spaces: Iterator[Memory], text: str, query: str
) -> None:
    assert found(among(next(spaces), text).recall(query))[:1] == [text]


@each(("text", "query"), NO_SLIPS)
def test_another_word_or_identifier_is_not_found(spaces: Iterator[Memory], text: str, query: str) -> None:
    assert text not in found(among(next(spaces), text).recall(query))


@each(("text", "query"), SLIPS)
def test_a_word_with_a_slip_finds_the_nearest(spaces: Iterator[Memory], text: str, query: str) -> None:
    hit = among(next(spaces), text).recall(query)[0]
    assert (hit.text, hit.why.words) == (text, (f"like {query.lower()}",))


def test_the_nearest_word_alone_is_meant(space: Memory) -> None:
    tell(space, [Said("a", "Vasilopita"), Said("b", "Vasilopitta"), Said("c", "Basilico")])
    assert [hit.chat for hit in space.recall("Vasilopit")] == ["a"]
    assert [hit.chat for hit in space.recall("vasilopitta")] == ["b"]


@pytest.mark.parametrize("agent", ["", "chef"])
def test_a_word_that_is_erased_or_of_another_agent_leads_nowhere(space: Memory, agent: str) -> None:
    space.chat("gone").append(role="user", content="Ask Quetzalina.")
    space.scoped(agent="coach").chat("hers").append(role="user", content="Ask Thorvaldsen.")
    own = space.scoped(agent=agent)
    space.erase(chat="gone")
    assert own.recall("Quetzalena") == []
    assert found(own.recall("Thorvaldsin")) == ([] if agent else ["Ask Thorvaldsen."])


def test_a_known_word_beside_one_with_a_slip_counts_for_itself(space: Memory) -> None:
    among(space, "The Terraform report is late.")
    hits = space.recall("teraform report")
    assert hits[0].text == "The Terraform report is late."
    assert set(hits[0].why.words) == {"like teraform", "report"}
