"""Short, plain pairs that a user tries first: one value for another one, and what only looks like it."""

from __future__ import annotations

from holdfast.dedup import relate
from tables import each

UPDATES = [
    ("User lives in Berlin", "User lives in Lisbon"),
    ("Works at Google", "Works at Microsoft"),
    ("User's favourite colour is green", "User's favourite colour is blue"),
    ("Meeting is on Monday", "Meeting is on Tuesday"),
    ("User's phone number is 555-1234", "User's phone number is 555-9876"),
    ("The user is 34 years old", "The user is 35 years old"),
    ("User is single", "User is married"),
    ("The server runs on port 8080", "The server runs on port 9090"),
    ("timeout = 30s", "timeout = 60s"),
    ("User is a student", "User is a teacher"),
    ("The office is in Munich", "The office is in Cologne"),
    ("Time zone: Europe/Berlin", "Time zone: America/New_York"),
    ("The budget is $5000", "The budget is $7500"),
    ("User's dentist is Dr. Meyer", "User's dentist is Dr. Patel"),
    ("User goes to bed at 22:00", "User goes to bed at 23:30"),
    ("Log level: info", "Log level: debug"),
    ("Version: 1.2.0", "Version: 1.3.0"),
    ("She works at IBM", "She works at Oracle"),
    ("The dentist appointment is on May 3", "The dentist appointment is on May 10"),
    ("Dinner is at 7pm", "Dinner is at 8pm"),
    ("User majors in history", "User majors in law"),
    ("The train leaves from platform 4", "The train leaves from platform 9"),
    ("Ben is a nurse", "Ben is an electrician"),
    ("Timezone: UTC+1", "Timezone: UTC+2"),
    ("Status: draft", "Status: published"),
    ("Max connections: 50", "Max connections: 80"),
    ("Address: 12 Elm Street", "Address: 99 Oak Avenue"),
    ("User's car is a Golf", "User's car is a Tesla"),
    ("Salary is 60k", "Salary is 65k"),
    ("I drive a Volvo", "I drive a Toyota"),
    ("User wants to be called Alex", "User wants to be called Sasha"),
]
OTHERS = [
    ("The user cannot eat peanuts", "The user cannot eat mushrooms"),
    ("user-db listens on 5432", "order-db listens on 5432"),
    (
        "The timeout of login-api is set in deploy.yaml, line 24",
        "The timeout of report-api is set in deploy.yaml, line 87",
    ),
    ("Ito & Jansen moved to a new office in Osaka", "Kowalski & Jansen moved to a new office in Warsaw"),
    ("User has a son named Max", "User has a daughter named Lea"),
    ("User lives in Berlin", "User's brother lives in Lisbon"),
    ("User has been to Japan", "User has been to Korea"),
    ("Max retries for uploads: 3", "Max retries for downloads: 5"),
    ("Reminder: buy milk", "Reminder: call mom"),
    ("User works as a nurse", "User works as a volunteer on Sundays"),
    ("Book is about war", "Book is about peace"),
    ("Cause of the login bug: stale token", "Cause of the logout bug: clock skew"),
    ("User is 180 cm tall", "User is 75 kg heavy"),
    ("GET /a returns 200", "GET /b returns 404"),
    ("User was born in 1990", "User was married in 2015"),
    ("User has an exam on May 3", "User has an exam on May 10"),
    ("Jana hat früher bei Ostara gearbeitet", "Jana hat früher bei Fellmann gearbeitet"),
    ("The user does yoga", "The user does pilates now and then"),
]
SAME = [
    ("Rent is 1.200 €", "Rent is 1200 euros"),
    ("The user is unavailable on Sunday mornings", "Sunday mornings don't work for the user"),
]


IN_DOUBT = [
    ("The user plays for FC Basel", "The user plays for FC Bern"),
    ("Bug 12 is assigned to Ana", "Bug 12 is assigned to Tom"),
    ("Vivo en Valencia", "Me mudé a Bilbao"),
    ("Ich wohne in Hamburg.", "Ich bin nach Leipzig umgezogen."),
    ("Staging runs Kafka 3.6", "Staging has upgraded to Redis 7.2"),
    ("The API runs PostgreSQL 14", "The API has moved to MySQL 8"),
]


@each(("old", "new"), IN_DOUBT)
def test_what_is_not_sure_is_left_in_doubt(old: str, new: str) -> None:
    assert relate(new, [old]).kind in ("unsure", "new")


@each(("old", "new"), UPDATES)
def test_another_value_in_the_same_words_is_an_update(old: str, new: str) -> None:
    assert relate(new, [old]).kind == "update"


@each(("old", "new"), [*OTHERS, *SAME])
def test_another_thing_or_another_writing_is_no_update(old: str, new: str) -> None:
    assert relate(new, [old]).kind != "update"
