"""Whether a text says what another one says: nothing less, nothing more, of nobody else.

A rule, not a likelihood: all content of both texts is the same word or a listed wording of the same sense, in
an order that tells the same, and what is written exactly (`writing.py`) is written alike. What says the same
in words that no table has is kept beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import pairwise, zip_longest

from holdfast.dedup.alignment import Pair, difference
from holdfast.dedup.parsed_text import ParsedText
from holdfast.dedup.statement import LONGEST, ContentItem, Statement
from holdfast.dedup.writing import OPERATOR, is_written_alike, short_words
from holdfast.text import analyze
from holdfast.text.fillers import fillers, stem
from holdfast.text.tables import headed_lists
from holdfast.text.value_tokens import tokenize

_TRAITS = frozenset({"change", "plan", "past"})
_ACTORS = frozenset({"=user", "=project", "=we"})
_BE = frozenset("is are be been being was were am has have had does did".split())
_RELATIONS = frozenset({"verb", "many", "light"})
# Words that two texts may have apart.
_APART = 4


def says_literally(old: ParsedText, new: ParsedText) -> bool:
    """Return whether two texts have the same words, whatever their usual case and punctuation."""
    one, other = old.statement, new.statement
    same = one.plain == other.plain and one.long == other.long
    return same and (old.text == new.text or is_written_alike(old.text, new.text))


def repeats(old: ParsedText, new: ParsedText) -> bool:
    """Return whether each of two texts covers all that the other one says, as it is written there."""
    parts = difference(old.statement, new.statement)
    return (
        bool(parts.both)
        and all(_says_the_same(one, other) for one, other in parts.both)
        and all(map(_says_nothing, (*parts.old, *parts.new)))
        and not (_actors(parts.old) and _actors(parts.new))
        and old.statement.traits & _TRAITS == new.statement.traits & _TRAITS
        and _tells_alike(old.statement, new.statement)
        and not _is_denial(old, new)
        and is_written_alike(old.text, new.text)
        and _has_same_order(old.text, new.text, parts.both)
    )


def _says_the_same(one: ContentItem, other: ContentItem) -> bool:
    """Return whether a statement says the same with another item in place of one."""
    # In German, wohnt and wohnte.
    is_past = one.text + "e" == other.text or other.text + "e" == one.text
    if one.negated != other.negated or _tense(one) != _tense(other) or is_past:
        return False
    if one.kind == other.kind == "concept":
        return not one.senses.isdisjoint(other.senses)
    return not one.keys.isdisjoint(other.keys)


def _tense(item: ContentItem) -> str:
    """Return whether a verb tells what happened, in English: designed, was designed; not is designed."""
    if item.kind != "word" and "verb" not in item.flags:
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


def _says_nothing(item: ContentItem) -> bool:
    """Return whether a statement without an item says the same as with it."""
    return "change" not in item.flags and not item.keys.isdisjoint(_words("empty"))


def _actors(items: Sequence[ContentItem]) -> bool:
    """Return whether the user, the team or the project is among some items."""
    return any(item.keys & _ACTORS for item in items)


def _is_denial(old: ParsedText, new: ParsedText) -> bool:
    """Return whether one of two texts denies what the other says in the same words."""
    if sum(word in _words("denials") for word in (*old.words, *new.words)) % 2 == 0:
        return False
    one, other = (
        {
            root
            for word, root in zip(text.content, text.stems, strict=True)
            if word not in _words("denials") | _words("beside")
        }
        for text in (old, new)
    )
    return one == other


def _tells_alike(old: Statement, new: Statement) -> bool:
    """Return whether two statements have the same persons, times and places, and are as sure."""
    one, other = old.bare_words, new.bare_words
    come, gone = (other - one) & _words("relating"), (one - other) & _words("relating")
    telling = _words("telling") | fillers()["now"]
    return (
        one & telling == other & telling
        and one.isdisjoint(_words("roughly")) == other.isdisjoint(_words("roughly"))
        and not (come and gone)
        and not _is_over(old, new)
        and not _is_over(new, old)
    )


def _is_over(old: Statement, new: Statement) -> bool:
    """Return whether one statement tells what was, and another one what is."""
    one, other = {*old.words}, {*new.words}
    return bool(one & _words("past") and other & _words("present")) and not (
        one & _words("present") or other & _words("past")
    )


def _has_same_order(old: str, new: str, both: Sequence[Pair]) -> bool:
    """Return whether two texts tell who does what to whom, and what follows from what, in the same order.

    The same words may stand in another order only in a list, in a statement turned round its verb (X is Y,
    Y is X; X leads Y, Y is led by X), or where a time or place leads.
    """
    one, other = _sequence(old), _sequence(new)
    if not (_owners(one) <= _owners(other) or _owners(other) <= _owners(one)):
        return False
    is_ordered = any(map(OPERATOR.search, (old, new))) or not _stems("connecting").isdisjoint((*one, *other))
    if is_ordered or _is_contrast(one) or _is_contrast(other):
        return _without_marks(one) == _without_marks(other)
    come, gone = Counter(one) - Counter(other), Counter(other) - Counter(one)
    apart = come + gone
    if apart.total() > _APART or not short_words() | fillers()["now"] | _words("marks") >= apart.keys():
        return _is_rotated(both)
    a, b = ([word for word in _with_sorted_lists(words) if word not in apart] for words in (one, other))
    if _words("by").isdisjoint(come) != _words("by").isdisjoint(gone):
        return _is_turned(a, b, frozenset(a))
    if any(_is_passive(one) != _is_passive(other) for one, other in both):
        return False
    fronted = frozenset(a) if "there" in apart else _stems("leading")
    return (
        a == b
        or _is_turned(a, b, _stems("linking"))
        or _is_fronted(a, b, fronted)
        or _is_fronted(b, a, fronted)
    )


def _is_rotated(both: Sequence[Pair]) -> bool:
    """Return whether what two texts speak of follows in the same order, from whichever on.

    Where a verb relates them, names and the user have to stand in the same order from the first on.
    """
    things = [other.place for one, other in both if not one.flags & _RELATIONS]
    falls = sum(before > after for before, after in zip(things, [*things[1:], *things[:1]], strict=True))
    actors = [b.place for a, b in both if "name" in (a.kind, b.kind) or "=user" in a.keys]
    has_verb = any("verb" in a.flags or a.kind == "word" for a, _ in both)
    return (falls <= 1 or len(things) < 3) and (not has_verb or actors == sorted(actors))


def _is_contrast(words: Sequence[str]) -> bool:
    """Return whether something is told from something else: tea, not coffee."""
    return any(word == "not" and before in _words("joining") for before, word in pairwise(words))


def _without_marks(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in _words("marks")]


def _owners(words: Sequence[str]) -> set[str]:
    """Return whose things are spoken of: my boss, Ann's boss, their boss."""
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


def _with_sorted_lists(words: Sequence[str]) -> list[str]:
    """Return words with those of each list in one order: tea and coffee, coffee and tea.

    Numbers are left as they are: 32 and 64 may count different things.
    """
    found = list(words)
    for place in range(len(found) - 2):
        first, joining, last = found[place : place + 3]
        if joining in _words("joining") and last < first and not first.startswith("#"):
            found[place], found[place + 2] = last, first
    return found


def _is_turned(one: Sequence[str], other: Sequence[str], verbs: AbstractSet[str]) -> bool:
    return any(
        one[place] in verbs and [*one[place + 1 :], one[place], *one[:place]] == list(other)
        for place in range(len(one))
    )


def _is_fronted(one: Sequence[str], other: Sequence[str], leading: AbstractSet[str]) -> bool:
    """Return whether the end of a text, which tells a place or a time, stands at the beginning of another."""
    return any(
        one[place] in leading and [*one[place:], *one[:place]] == list(other) for place in range(1, len(one))
    )


@cache
def _words(kind: str) -> frozenset[str]:
    tables = {head: " ".join(words) for (head,), words in headed_lists("holdfast.dedup", "repetition.txt")}
    return frozenset(tables[kind].split()) | ({","} if kind == "marks" else frozenset())


@cache
def _stems(kind: str) -> frozenset[str]:
    return frozenset(map(stem, _words(kind)))
