from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from holdfast.dedup import relate
from holdfast.text import analyze
from soak import cases
from tables import each

DATA = Path(__file__).parent.parent / "data" / "merge"

DUPLICATES = [
    ("User lives in Berlin", "The user resides in Berlin."),
    ("I work at Google", "User is employed by Google"),
    ("The user prefers dark mode", "prefers dark mode"),
    ("The meeting is at 5 pm", "Meeting is at 17:00"),
    ("User has a dog named Rex", "The user's dog is called Rex"),
    ("The timeout is 30 minutes", "The timeout is half an hour"),
    ("User can't stand olives", "The user hates olives"),
    ("Rent is 1,200 euros per month", "The rent is €1200 per month."),
    ("Joost is away from 3 to 17 July", "Joost is away July 3-17"),
]
UPDATES = [
    ("User lives in Berlin", "The user has moved to Lisbon."),
    ("User lives in Berlin", "User lives in Lisbon"),
    ("User likes olives", "User no longer likes olives"),
    ("The meeting with Anna is on Monday", "The meeting with Anna was moved to Thursday"),
    ("The deadline is 3 May", "The deadline is 10 May"),
    ("The API listens on port 8080", "The API listens on port 9090"),
    ("Debug logging is enabled", "Debug logging is disabled"),
    ("User uses vim", "User switched from vim to neovim"),
    ("User's favourite colour is blue", "The user's favorite color is green now"),
    ("cache_ttl: 300", "cache_ttl: 3600"),
    ("User prefers tabs over spaces", "User prefers spaces over tabs"),
]
NEWS = [
    ("Anna lives in Berlin", "Ben lives in Berlin"),
    ("User speaks German", "User speaks Spanish"),
    ("The staging server runs Python 3.11", "The production server runs Python 3.12"),
    ("User visited Rome in 2019", "User visited Paris in 2021"),
    ("User's dog is named Rex", "User's cat is named Tom"),
    ("Bug #12 is fixed", "Bug #13 is open"),
    ("User lives in Berlin", "The build takes four minutes"),
    ("On weekdays the shop opens at 8:00", "On weekends the shop opens at 10:00"),
]
NEITHER = [  # not to be merged, whether they are called new or unsure
    ("User plays tennis", "User plays tennis every Saturday with Georg"),
    ("User lives in Berlin", "User wants to move to Lisbon"),
    ("User lives in Berlin", "User used to live in Lisbon"),
    ("Anna manages Ben", "Ben manages Anna"),
    ("User drinks coffee", "User doesn't drink coffee after 3 pm"),
    ("User lives in Berlin", ""),
]


@each(("old", "new"), DUPLICATES)
def test_a_duplicate(old: str, new: str) -> None:
    assert relate(new, [old]).kind == "duplicate"


@each(("old", "new"), UPDATES)
def test_an_update(old: str, new: str) -> None:
    assert relate(new, [old]).kind == "update"


@pytest.mark.xfail(reason="the shorter text may leave out the cats, or tell that they are gone")
def test_a_text_that_says_less_is_left_in_doubt() -> None:
    assert relate("User lives in Berlin", ["User lives in Berlin with two cats"]).kind == "duplicate"


@pytest.mark.xfail(reason="`cello` and `cellist` are as alike as `cook` and `cooker`, which are two things")
def test_a_verb_that_became_a_noun_is_left_in_doubt() -> None:
    old = "User plays the cello in an amateur orchestra"
    assert relate("User is a cellist in an amateur orchestra", [old]).kind == "duplicate"


@each(("old", "new"), NEWS)
def test_something_new(old: str, new: str) -> None:
    assert relate(new, [old]).kind == "new"


@each(("old", "new"), NEITHER)
def test_what_must_not_be_merged(old: str, new: str) -> None:
    assert relate(new, [old]).kind in ("new", "unsure")


NOT_THE_SAME = [
    ("The dump file is encrypted", "The dump file is unencrypted"),
    ("Max connections on the read replica: 200", "Max connections on the primary: 200"),
    ("User bought a guitar in Porto", "User bought a piano in Porto"),
    ("User pays 39 euros monthly for the gym", "User pays 39 euros yearly for the gym"),
    ('The table "users" is partitioned by region', 'The table "events" is partitioned by region'),
    ("It fails unless HTTPS_PROXY is set", "It fails unless HTTPS_PROXY is not set"),
    ("User was born in Porto", "User studied in Porto"),
    ("The telescope's camera is broken", "User owns a camera"),
    ("No release without approval from Ingrid", "No release with approval from Ingrid"),
]


@each(("old", "new"), NOT_THE_SAME)
def test_another_thing_in_the_same_words(old: str, new: str) -> None:
    assert relate(new, [old]).kind != "duplicate"
    assert relate(old, [new]).kind != "duplicate"


@each(
    ("value", "another"),
    [
        (r"\bMonday\b", "Friday"),
        (r"\b16\b", "17"),
        (r"\bAnna\b", "Olga"),
        (r"\bBerlin\b", "Tallinn"),
        (r"\bis\b", "is not"),
    ],
)
def test_another_value_is_never_a_duplicate(value: str, another: str) -> None:
    for old, new in DUPLICATES + UPDATES + NEWS:
        for text in (old, new):
            changed = re.sub(value, another, text, count=1)
            assert changed == text or relate(changed, [text]).kind != "duplicate", (text, changed)


# Among many


@each(
    ("new", "known", "kind", "index"),
    [
        ("User lives in Lisbon", ["User lives in Berlin", "The user resides in Lisbon"], "duplicate", 1),
        ("User has moved to Lisbon", ["User lives in a small house", "User lives in Berlin"], "update", 1),
        ("User lives in Rome", ["User lives in Berlin", "User lives in Lisbon"], "unsure", 0),
        ("User lives in Rome", [], "new", None),
    ],
)
def test_the_surest_of_several_wins(new: str, known: list[str], kind: str, index: int | None) -> None:
    relation = relate(new, known)
    assert (relation.kind, relation.index) == (kind, index)


FACTS = [old for old, _ in DUPLICATES + UPDATES + NEWS]


def test_a_repetition_is_found_among_many() -> None:
    texts = list(dict.fromkeys(FACTS))
    wrong = [text for text in texts if texts[relate(text, texts).index or 0] != text]
    assert wrong == []


# Invariants

TEXTS = st.one_of(st.text(max_size=80), st.sampled_from(FACTS))


@given(TEXTS, TEXTS)
def test_it_never_raises_and_is_deterministic(old: str, new: str) -> None:
    assert relate(new, [old]) == relate(new, [old])


# The case of an identifier or of an abbreviation may be all that tells it from another one.
PLAIN = [text for text in FACTS if not re.search(r"[#_]|[a-z][A-Z]|\b[A-Z]{2,}\b", text)]


@example("Joost is away from 3 to 17 July", "", True)
@given(st.sampled_from(PLAIN), st.sampled_from(["", ".", "!", " …", "\n", '"']), st.booleans())
def test_a_text_is_a_duplicate_of_itself(text: str, mark: str, loud: bool) -> None:
    assume(not (text[-1].isdigit() and mark == '"'))  # inches
    assert relate((text.upper() if loud else text.lower()) + mark, [text]).kind == "duplicate"


@given(st.text(max_size=200))
def test_any_text_is_a_duplicate_of_itself(text: str) -> None:
    assert relate(text, [text]).kind == "duplicate"


@given(st.sampled_from(FACTS), st.sampled_from(FACTS))
def test_the_why_quotes_no_name_of_the_texts(old: str, new: str) -> None:
    why = {analyze.fold(word) for word in relate(new, [old]).why.split()}
    names = {
        analyze.fold(w)
        for text in (old, new)
        for w in analyze.tokens(text)[1:]
        if w[:1].isupper() or w.isdigit()
    }
    assert why.isdisjoint(names - {"the", "a", "it", "i"})


@pytest.mark.scaled
@pytest.mark.slow
@each("unit", ["a", "1.", "a_", "a/", "a-", "1,", "a'", "東", "🎉", "\u0301", "no ", "from "])
@each("size", [600, cases(60_000, 1_000_000)])
def test_hostile_texts_are_compared(unit: str, size: int) -> None:
    text = (unit * size)[:size]
    assert relate(text + "b", [text]).kind in ("new", "unsure", "duplicate", "update")
    assert relate(text, [text]).kind == "duplicate"


def test_long_texts_are_compared_for_equality_only() -> None:
    text = "User lives in Berlin. " * 200
    assert relate(text + "\n", [text]).kind == "duplicate"
    assert relate(text.upper(), [text]).kind == "new"
    assert relate(text + " And in Rome.", [text]).kind == "new"


# Labelled pairs


# Nothing was fitted to held_out and check_p; the latter shares an author with tune_p. Most of what says
# the same in other words is left in doubt: what is overlooked is neither found nor left so.
UPDATES_MISSED = {"held_out": 0.41, "tune_t": 0.5, "tune_w": 0.75}


@pytest.mark.slow
@each("half", sorted(path.stem for path in DATA.glob("*.jsonl")))
def test_the_labelled_pairs(half: str) -> None:
    lines = (DATA / f"{half}.jsonl").read_text("utf-8").splitlines()
    pairs = [json.loads(line) for line in lines if line.strip()]
    found: Counter[tuple[str, str]] = Counter()
    failures = []
    for pair in pairs:
        relation = relate(pair["new"], [pair["old"]])
        found[pair["label"], relation.kind] += 1
        if relation.kind != pair["label"]:
            failures.append(
                f"{pair['label']} → {relation.kind} ({relation.why}): {pair['old']} | {pair['new']}"
            )
    labelled = Counter(pair["label"] for pair in pairs)
    overlooked = found["duplicate", "new"] + found["duplicate", "update"]
    shares = {
        "wrong supersede": sum(n for (label, said), n in found.items() if said == "update" != label)
        / len(pairs),
        "wrong duplicate": sum(n for (label, said), n in found.items() if said == "duplicate" != label)
        / len(pairs),
        "duplicates overlooked": overlooked / max(labelled["duplicate"], 1),
        "updates missed": 1 - found["update", "update"] / max(labelled["update"], 1),
    }
    bars = {
        "wrong supersede": 0.01,
        "wrong duplicate": 0.0025,
        "duplicates overlooked": 0.15,
        "updates missed": UPDATES_MISSED.get(half, 0.4),
    }
    broken = {name: round(share, 3) for name, share in shares.items() if share > bars[name]}
    assert not broken, f"{half}: {broken}\n" + "\n".join(failures)
