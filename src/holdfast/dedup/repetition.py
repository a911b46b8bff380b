"""Detection of repetitions: two texts that say the same, no more and no less, of the same things.

A rule, not a likelihood: all content of both texts is the same word or a listed wording of the same sense, in
an order that tells the same, and exact parts (`writing.py`) are written alike. A text that says the same
in words outside the tables is kept beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import pairwise, zip_longest

from holdfast.dedup.alignment import VALUES, Pair, difference
from holdfast.dedup.parsed_text import ParsedText, parse_text
from holdfast.dedup.statement import LONGEST, ContentItem, Statement
from holdfast.dedup.writing import OPERATOR, is_written_alike, short_words
from holdfast.text import analyze
from holdfast.text.fillers import fillers, stem
from holdfast.text.tables import headed_lists
from holdfast.text.value_tokens import tokenize

_CONTRACTIONS = [
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"\b(i)['’]m\b", r"\1 am"),
        (r"\b(can)['’]t\b", r"\1not"),
        (r"\b(wo)n['’]t\b", "will not"),
        (r"(?<=\w)n['’]t\b", " not"),
        (r"['’]re\b", " are"),
        (r"['’]ve\b", " have"),
        (r"['’]ll\b", " will"),
        (r"\b(i|you|he|she|it|we|they)['’]d\b", r"\1 would"),
        (r"\b(let)['’]s\b", r"\1 us"),
        (r"\b(he|she|it|that|there|here|what|who|where)['’]s\b|(\w)['’]s(?= \w+ing\b)", r"\1\2 is"),
    )
]
_TRAITS = frozenset({"change", "plan", "past"})
_BE = frozenset("is are be been being was were am has have had does did".split())
_HAVE = frozenset("has have had".split())
_RELATING = frozenset({"=have", "=use"})
_RELATIONS = frozenset({"verb", "many", "light"})
# Words, at most, that only one of two texts has.
_APART = 4


def says_literally(old: ParsedText, new: ParsedText) -> bool:
    """Return whether two texts have the same words; usual case and punctuation do not count."""
    older, newer = old.statement, new.statement
    if older.long or newer.long:
        return old.text.split() == new.text.split()
    return older.plain == newer.plain and (old.text == new.text or is_written_alike(old.text, new.text))


def repeats(old: ParsedText, new: ParsedText) -> bool:
    """Return whether each of two texts covers all of the other one, exact parts as written."""
    old, new = (parse_text(_in_full(text.text)) for text in (old, new))
    older, newer = old.statement, new.statement
    parts = difference(older, newer)
    return (
        bool(parts.both)
        and all(_says_the_same(item, older, same, newer) for item, same in parts.both)
        and all(_says_nothing(item, newer) for item in parts.old)
        and all(_says_nothing(item, older) for item in parts.new)
        and not (parts.old and parts.new)
        and older.traits & _TRAITS == newer.traits & _TRAITS
        and _tells_alike(older, newer)
        and not _is_denial(old, new)
        and is_written_alike(old.text, new.text)
        and _has_same_order(old, new, parts.both)
    )


def _in_full(text: str) -> str:
    """Return a text without contractions: I'm, isn't, she's moving."""
    for pattern, words in _CONTRACTIONS:
        text = pattern.sub(words, text)
    return text


def _says_the_same(older: ContentItem, old: Statement, newer: ContentItem, new: Statement) -> bool:
    """Return whether two items of two statements say the same, in whatever words.

    The same word has to have the same form: an operator is no operation, and one brother not several.
    """
    if older.negated != newer.negated or _tense(older) != _tense(newer):
        return False
    said, again = (
        text.words[item.place : item.place + item.length] for item, text in ((older, old), (newer, new))
    )
    form, form_again = _forms(older, said), _forms(newer, again)
    is_number_same = _is_plural(older, form) == _is_plural(newer, form_again)
    if older.kind == "concept" == newer.kind:
        roots, roots_again = ({*map(stem, words)} - short_words() for words in (said, again))
        if not roots.isdisjoint(roots_again):
            return {*form} - short_words() == {*form_again} - short_words()
        return not older.senses.isdisjoint(newer.senses) and is_number_same
    is_value = older.kind in VALUES and (older.kind != "weekday" or is_number_same)
    return (is_value or form == form_again) and not older.keys.isdisjoint(newer.keys)


def _forms(item: ContentItem, words: Sequence[str]) -> tuple[str, ...]:
    """Return words in lower case, verbs of the first person in the form of the third."""
    written = tuple(words) if item.kind == "concept" else (item.text.lower(),)
    if item.before in _words("speakers"):
        return (written[0].removesuffix("s") + "s", *written[1:])
    return written


def _is_plural(item: ContentItem, words: Sequence[str]) -> bool:
    is_noun = not item.flags & {"verb", "one"}
    return is_noun and (
        words[-1] in _words("plurals") or (words[-1].endswith("s") and words[-1][-2:] != "ss")
    )


def _tense(item: ContentItem) -> str:
    """Return the tense of an English verb: "past" for designed and was designed, not for is designed."""
    is_verb = item.kind == "word" or item.flags & {"verb", "one"}
    if not is_verb or not item.keys.isdisjoint(_words("empty")):
        return ""
    before = _words("present") | _words("past") | _words("personal")
    if _is_form_of_past(item) and item.before not in _words("participle"):
        return "past"
    return "going on" if item.text.endswith("ing") and item.before in before else ""


def _is_form_of_past(item: ContentItem) -> bool:
    word = item.text.lower()
    return word.endswith("ed") or (word not in _BE and analyze.is_irregular(word))


def _is_passive(item: ContentItem) -> bool:
    return _is_form_of_past(item) and item.before in _words("participle") & _BE


def _says_nothing(item: ContentItem, other: Statement) -> bool:
    """Return whether an item without a partner in the other statement adds nothing to what that one says.

    Whose dog it is may be told by "has"; but who has a doctor is not one.
    """
    if "change" in item.flags or item.keys.isdisjoint(_words("empty")):
        return False
    if "=name" in item.keys:
        return not item.text.endswith("d")
    return item.keys.isdisjoint(_RELATING) or not (_is_one_of(other) or _HAVE & {*other.words})


def _is_one_of(statement: Statement) -> bool:
    """Return whether a statement calls somebody one of several."""
    articles, are = _words("indefinite"), _words("linking")
    return any(word in are and after in articles for word, after in pairwise(statement.words))


def _is_denial(old: ParsedText, new: ParsedText) -> bool:
    """Return whether one of two texts denies the other in the same words."""
    denials, aside = _words("denials"), _words("denials") | _words("beside")
    count = sum(word in denials for word in (*old.words, *new.words))
    old_roots, new_roots = (
        {root for word, root in zip(text.content, text.stems, strict=True) if word not in aside}
        for text in (old, new)
    )
    return count % 2 == 1 and old_roots == new_roots


def _tells_alike(old: Statement, new: Statement) -> bool:
    """Return whether two statements have the same persons, times and places, and are as sure."""
    older, newer = old.bare_words, new.bare_words
    come, gone = (newer - older) & _words("relating"), (older - newer) & _words("relating")
    telling = _words("telling") | fillers()["now"] | fillers()["stop"]
    return (
        older & telling == newer & telling
        and older.isdisjoint(_words("roughly")) == newer.isdisjoint(_words("roughly"))
        and not (come and gone)
        and {_is_of_one(old), _is_of_one(new)} != {True, False}
        and not _tells_apart(old, new)
        and not _tells_apart(new, old)
    )


def _is_of_one(statement: Statement) -> bool | None:
    """Return whether a statement tells of the user, not of a team; None where it tells of both or neither."""
    alone, together = (not _words(kind).isdisjoint(statement.words) for kind in ("user", "we"))
    return alone if alone != together else None


def _tells_apart(statement: Statement, other: Statement) -> bool:
    """Return whether one statement is past and the other present, or one says "is a" and the other "has"."""
    words, others = {*statement.words}, {*other.words}
    past, present = _words("past"), _words("present")
    if words & past and others & present and not (words & present or others & past):
        return True
    return bool(_HAVE & others) and _is_one_of(statement) and not _is_one_of(other)


def _has_same_order(old: ParsedText, new: ParsedText, both: Sequence[Pair]) -> bool:
    """Return whether two texts have actors, objects, causes and effects in the same order.

    The same words may stand in another order only in the list at the end of what somebody likes, speaks or
    has, in a statement turned round its verb (the X is Y, Y is the X; X leads Y, Y is led by X), or where a
    time or place leads.
    """
    older, newer = _sequence(old.text), _sequence(new.text)
    if not (_owners(older) <= _owners(newer) or _owners(newer) <= _owners(older)):
        return False
    is_ordered = any(OPERATOR.search(text.text) for text in (old, new)) or not _stems(
        "connecting"
    ).isdisjoint((*older, *newer))
    if is_ordered or _is_contrast(older) or _is_contrast(newer):
        marks = _words("marks")
        return [word for word in older if word not in marks] == [word for word in newer if word not in marks]
    come, gone = Counter(older) - Counter(newer), Counter(newer) - Counter(older)
    apart = come + gone
    if apart.total() > _APART or not short_words() | fillers()["now"] | _words("marks") >= apart.keys():
        return _is_rotated(both)
    if any("many" in item.flags or item.keys & _RELATING for item, _ in both):
        older, newer = _with_sorted_list(older), _with_sorted_list(newer)
    a, b = ([word for word in words if word not in apart] for words in (older, newer))
    if _words("by").isdisjoint(come) != _words("by").isdisjoint(gone):
        return _is_turned(a, b, frozenset(a))
    if any(_is_passive(item) != _is_passive(same) for item, same in both):
        return False
    is_definite = any({item.kind, same.kind} & {"name", "id", *VALUES} for item, same in both)
    fronted = frozenset(a) if "there" in apart else _stems("leading")
    return (
        a == b
        # All cats are animals, which are not all cats.
        or (is_definite and _is_turned(a, b, _stems("linking")))
        or _is_fronted(a, b, fronted)
        or _is_fronted(b, a, fronted)
    )


def _is_rotated(both: Sequence[Pair]) -> bool:
    """Return whether the things of two texts are in the same cyclic order.

    Where a verb relates them, names and the user have to stand in the same order from the first on.
    """
    things = [b.place for a, b in both if not a.flags & _RELATIONS]
    falls = sum(before > after for before, after in zip(things, [*things[1:], *things[:1]], strict=True))
    actors = [b.place for a, b in both if "name" in (a.kind, b.kind) or "=user" in a.keys]
    has_verb = any("verb" in a.flags or a.kind == "word" for a, _ in both)
    return (falls <= 1 or len(things) < 3) and (not has_verb or actors == sorted(actors))


def _is_contrast(words: Sequence[str]) -> bool:
    """Return whether words contrast two things: tea, not coffee."""
    return any(word == "not" and before in _words("joining") for before, word in pairwise(words))


def _owners(words: Sequence[str]) -> set[str]:
    """Return the owners of things: my boss, Ann's boss, their boss."""
    return {before for before, word in pairwise(words) if word == "'s"} | _stems("possessive") & {*words}


@lru_cache(maxsize=4096)
def _sequence(text: str) -> tuple[str, ...]:
    """Return the stems of all words; an A that is a name is none of the articles, and I am the user."""
    tokens = [token for token in tokenize(text[:LONGEST]) if token.key not in _words("ends")]
    stems: list[str] = []
    for token, after in zip_longest(tokens, tokens[1:]):
        is_name = token.key == "a" and (after is None or after.kind == "mark")
        if token.key in _words("user"):
            stems += ["user", "'s"] if token.key in ("my", "mine") else ["user"]
        elif is_name or token.key not in _words("articles"):
            stems.append(stem(token.key))
    return tuple(stems)


def _with_sorted_list(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words with the list at their end sorted: tea and coffee, coffee and tea.

    Numbers are left as they are: 32 and 64 may count different things.
    """
    start = len(words) - 1
    while start >= 2 and (words[start - 1] == "," or words[start - 1] in _words("joining")):
        start -= 2
    entries = sorted(words[start::2])
    if len(entries) < 2 or "#" in {word[0] for word in entries}:
        return words
    return (*words[:start], *entries)


def _is_turned(words: Sequence[str], other: Sequence[str], verbs: AbstractSet[str]) -> bool:
    return any(
        words[place] in verbs and [*words[place + 1 :], words[place], *words[:place]] == list(other)
        for place in range(len(words))
    )


def _is_fronted(words: Sequence[str], other: Sequence[str], leading: AbstractSet[str]) -> bool:
    """Return whether the place or time at the end of a text begins the other one."""
    return any(
        words[cut] in leading and [*words[cut:], *words[:cut]] == list(other) for cut in range(1, len(words))
    )


@cache
def _words(kind: str) -> frozenset[str]:
    tables = {head: " ".join(words) for (head,), words in headed_lists("holdfast.dedup", "repetition.txt")}
    return frozenset(tables[kind].split()) | ({","} if kind == "marks" else frozenset())


@cache
def _stems(kind: str) -> frozenset[str]:
    return frozenset(map(stem, _words(kind)))
