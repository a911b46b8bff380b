"""Pairs that differ in a value, a denial, a comparative or a temporal word are never merged."""

from __future__ import annotations

from itertools import combinations

import pytest

from holdfast import Memory
from holdfast.dedup import relate

Pair = tuple[str, str]

TIMES = [
    *combinations(("before", "after", "during"), 2),
    ("since", "until"),
]
TIMED = [
    "The release is {} Christmas",
    "The backup runs {} midnight",
    "Deploys are allowed {} the freeze, says Ingrid",
]
COMPARED = [
    ("more", "less"),
    ("higher", "lower"),
    ("larger", "smaller"),
    ("faster", "slower"),
    ("cheaper", "more expensive"),
]
COMPARING = [
    "The first one is {} than the second one",
    "The new engine is {} than the old engine",
    "The meeting was {} than planned",
]
EITHER = [
    ("The light in the hall is {}", [("on", "off"), ("brighter", "darker")]),
    ("Turn the notifications {} at night", [("on", "off")]),
    ("The price is {} 5 euros", [("under", "over"), ("above", "below")]),
    ("{} 3 people attend the course", [("At least", "At most"), ("More than", "Fewer than")]),
    ("User drinks coffee {} sugar", [("with", "without")]),
    ("{} knows the password", [("Everybody", "Nobody")]),
    ("User {} eats meat", [("always", "never")]),
    ("The timeout is the {} of the two", [("maximum", "minimum"), ("most", "least")]),
    ("Backup runs in the {}", [("morning", "evening")]),
    ("The office is on the {} side", [("left", "right"), ("north", "south")]),
]
VALUES = [
    ("The app uses Django {}", [("2.3", "2.4"), ("2.3", "2.3.1"), ("4", "5")]),
    ("She lives on the {} floor", [("3rd", "5th"), ("third", "fifth"), ("first", "second")]),
    ("The meeting is on the {}", [("3rd", "5th"), ("3rd of May", "4th of May")]),
    ("The train leaves at {}", [("5 pm", "6 pm"), ("17:00", "17:05"), ("noon", "midnight")]),
    ("The course begins on {}", [("Monday", "Tuesday"), ("3 May", "3 June"), ("2024-05-03", "2024-05-04")]),
    ("The temperature in the room is {}", [("5 °C", "-5 °C"), ("18 °C", "19 °C")]),
    ("Rent is {} a month", [("1,200 euros", "1,300 euros"), ("$900", "€900")]),
    ("The file lies in {}", [("/etc/app.conf", "/etc/web.conf"), ("~/notes/a.md", "~/notes/b.md")]),
    ("The upload takes {}", [("30 minutes", "45 minutes"), ("2 hours", "2 days"), ("10%", "10")]),
]
DENIED = [
    ("User likes tea", "User does not like tea"),
    ("User likes tea", "User doesn’t like tea"),
    ("User eats meat", "User eats no meat"),
    ("User eats meat", "User does not eat any meat"),
    ("The build is green", "The build is not green"),
    ("The build is green", "The build isn't green"),
    ("Deploy on Fridays", "Do not deploy on Fridays"),
    ("Deploy on Fridays", "Never deploy on Fridays"),
    ("The server has a backup", "The server has no backup"),
    ("Der Nutzer isst Fleisch", "Der Nutzer isst kein Fleisch"),
    ("La usuaria come carne", "La usuaria no come carne"),
]
ABROAD = [
    ("Die Abgabe ist vor Weihnachten", "Die Abgabe ist nach Weihnachten"),
    ("Der Laden hat seit Montag offen", "Der Laden hat bis Montag offen"),
    ("La entrega es antes de Navidad", "La entrega es después de Navidad"),
    ("Le rendu est avant Noël", "Le rendu est après Noël"),
]


def filled(templates: list[str], pairs: list[Pair]) -> list[Pair]:
    return [(one.format(a), one.format(b)) for one in templates for a, b in pairs]


TABLE = [
    *filled(TIMED, TIMES),
    *filled(COMPARING, COMPARED),
    *(pair for template, pairs in (*EITHER, *VALUES) for pair in filled([template], pairs)),
    *DENIED,
    *ABROAD,
]


@pytest.mark.parametrize("suffix", ["", ", as Ingrid told me"])
def test_such_a_pair_is_never_a_duplicate(suffix: str) -> None:
    pairs = [pair for old, new in TABLE for pair in ((old, new), (new, old))]
    wrong = [(a, b) for a, b in pairs if relate(b + suffix, [a + suffix]).kind == "duplicate"]
    assert len(pairs) > 150
    assert wrong == []


def test_neither_of_the_two_is_swallowed(memory: Memory) -> None:
    for text in ("The release is before Christmas", "The release is after Christmas"):
        memory.remember(text)
    assert [one.text for one in memory.records()] == [
        "The release is before Christmas",
        "The release is after Christmas",
    ]
