"""Things that an agent may come to know: short plausible sentences that share words and subjects.

Templates and values are few and their combinations many, so that a new sentence meets others of the same
subject, of the same wording, and now and then itself: what comparing a text with what is stored has to tell
apart. Such text has the cost of real text, and says nothing about how well anything is judged.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

_VALUES = {
    "first": "Anna Ben Carla David Elif Farid Greta Hugo Ines Jonas Katya Liam Mei Nadia Omar Priya Rosa "
    "Samir Tess Yuki",
    "last": "Abbas Berger Costa Dietrich Eriksen Fontaine Garcia Hoffmann Ito Jansen Kowalski Lindgren "
    "Moreau Novak Okafor "
    "Petrov Quinn Rossi Schmidt Tanaka Usman Varga Weber Yilmaz Zhang",
    "relative": "sister brother mother father aunt cousin flatmate neighbour manager dentist",
    "city": "Berlin Lisbon Porto Hamburg Vienna Oslo Madrid Kraków Zürich Lyon Turin Dublin Ghent Prague "
    "Athens Leeds",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "drink": "tea coffee cocoa water cider beer milk juice",
    "food": "mushrooms peanuts shellfish gluten olives cheese celery eggs",
    "pet": "cat dog parrot rabbit tortoise hamster",
    "hobby": "climbing choir chess pottery rowing gardening sailing knitting astronomy baking",
    "job": "architect nurse translator teacher welder lawyer chemist violinist pilot baker",
    "area": "billing search login export media mail report order stock chat audit tax",
    "part": "api worker gateway cache queue scheduler database frontend proxy importer",
    "engine": "PostgreSQL MySQL Redis Kafka nginx Elasticsearch RabbitMQ MongoDB",
    "place": "production staging CI development Frankfurt Singapore",
    "language": "Python Go Rust Java TypeScript Kotlin C# Ruby",
    "file": "settings.toml Makefile deploy.yaml pyproject.toml nginx.conf schema.sql .env.example README.md",
    "symptom": "timeouts deadlocks crashes leaks duplicates stalls retries overflows",
    "cause": "a missing index|a full disk|a stale lock|an expired certificate|clock drift|a wrong time "
    "zone|an old driver",
    "remedy": "restarting it|raising the limit|adding an index|pinning the version|clearing the cache|a "
    "longer timeout",
    "team": "platform payments growth security data mobile support",
    "unit": "seconds minutes megabytes requests connections workers",
    "test": "test_login test_refund test_import test_search test_upload test_signup test_quota test_rates",
}
_FINDINGS = (
    "{first} {last} lives in {city}",
    "{first} {last} works as a {job} in {city}",
    "{first} {last} leads the {team} team",
    "{first} {last} reviews all changes to {area}-{part}",
    "{first} {last} is away every {day}",
    "{first} {last} has a {pet} named {first}",
    "{first} {last} cannot eat {food}",
    "The {area}-{part} runs {engine} {number} in {place}",
    "The {area}-{part} limit in {place} is {number} {unit}",
    "The {area}-{part} is written in {language} and owned by the {team} team",
    "The {area}-{part} is deployed every {day} at {hour}:30",
    "Port {port} belongs to the {area}-{part} in {place}",
    "{Symptom} of the {area}-{part} came from {cause}",
    "{Symptom} in {area}-{part} went away after {remedy}",
    "{test} fails on {place} when the {area}-{part} is slow",
    "The timeout of {area}-{part} is set in {file}, line {number}",
    "Before touching {file} of {area}-{part}, ask {first} {last}",
    "Upgrading {engine} to {number} took the {area}-{part} {hour} minutes",
    "The customer {last} & {last} pays {number} euros a month for {area}",
    "{last} & {last} moved their contract from {city} to {city} in {year}",
)
_USER = (
    "The user lives in {city}",
    "The user works as a {job}",
    "The user prefers {drink} in the morning",
    "The user is allergic to {food}",
    "The user has a {pet} named {first}",
    "The user goes to {hobby} every {day}",
    "The user's {relative} {first} lives in {city}",
    "The user's {relative} {first} works as a {job}",
    "The user's {relative} {first} likes {hobby}",
    "The user moved to {city} in {year}",
    "The user wants examples in {language}",
    "The user meets {first} {last} on {day}s",
    "The user's team is called {team} and has {hour} people",
)
_ENVIRONMENT = (*_FINDINGS[7:13], *_FINDINGS[15:18])
_SLOT = re.compile(r"\{(\w+)\}")


class Sentences:
    """Draw sentences; the same seed and stream give the same ones, another stream gives others."""

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        self._values = {name: _split(values) for name, values in _VALUES.items()}

    def findings(self, count: int, stream: int = 0) -> list[str]:
        """Draw what was found out about people and systems, each sentence once."""
        return self._draw(_FINDINGS, count, f"findings {stream}")

    def about_user(self, count: int, stream: int = 0) -> list[str]:
        """Draw facts about the user, each once."""
        return self._draw(_USER, count, f"user {stream}")

    def about_environment(self, count: int, stream: int = 0) -> list[str]:
        """Draw facts about the systems around, each once."""
        return self._draw(_ENVIRONMENT, count, f"environment {stream}")

    def questions(self, count: int) -> list[str]:
        """Draw questions about the findings."""
        words = (re.findall(r"[\w.&-]+", text) for text in self.findings(count, stream=1_000_003))
        chance = random.Random(f"{self._seed} questions")
        return [f"What about {' '.join(chance.sample(some, min(4, len(some))))}?" for some in words]

    def _draw(self, templates: Sequence[str], count: int, stream: str) -> list[str]:
        drawn: dict[str, None] = {}
        made = self._endless(templates, random.Random(f"{self._seed} {stream}"))
        while len(drawn) < count:
            drawn[next(made)] = None
        return list(drawn)

    def _endless(self, templates: Sequence[str], chance: random.Random) -> Iterator[str]:
        def value(slot: re.Match[str]) -> str:
            name = slot[1]
            if name.lower() in self._values:
                chosen = chance.choice(self._values[name.lower()])
                return chosen.capitalize() if name[0].isupper() else chosen
            low, high = {"number": (1, 99), "hour": (6, 22), "year": (2012, 2026), "port": (1_024, 9_999)}[
                name
            ]
            return str(chance.randint(low, high))

        while True:
            yield _SLOT.sub(value, chance.choice(templates))


def _split(values: str) -> list[str]:
    return values.split("|") if "|" in values else values.split()
