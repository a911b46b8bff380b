"""Intents of an injection, such as to "send" a secret somewhere "quietly": roles that many words can fill.

The rules of `injection_rules` are about the wording of an order; those here about its aim. A sentence is read
once, word by word, and the roles of its words decide. A verb counts as an order only in the position of an
imperative: first in a clause, after "please".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, reduce
from itertools import chain, product
from operator import or_
from typing import NamedTuple

from holdfast.safety.deobfuscate import fold
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines

HEAD = 4  # letters of a word that is known by its beginning
_LONGEST = 400  # characters of a sentence; what is longer is read in parts
_END = late_pattern(r"(?<![.!?;])[.!?;]++(?=[\s\"'”’)\]*]|$)|[。！？；।؟]|\n")
_TOKEN = late_pattern(r"[^\W_]+(?:'(?:t|re|ll|ve|m|d)(?!\w))?")
_CHOICE = late_pattern(r"\([^()]*\)\??|[^()]+")  # the parts of an entry of a table
_MEMBER = late_pattern(r"\.\.|[^\W_]+(?:'(?:t|re|ll|ve|m|d)(?!\w))?\*?")
_ADDRESS = late_pattern(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.\w")
_REACH = 160  # characters from the first word of an intent to the last
# Scripts whose words are not parted by spaces, or begin with articles.
_UNSPACED = late_pattern("[\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_CLAUSE = frozenset(",:;—–\"“”«»„'(*>[{`|/#-")
_LEADS = frozenset(
    "please then and or just now always must should shall will would kindly simply instead quietly silently "
    "secretly immediately also first only can may do you i'd bitte dann und sofort einfach luego y e et puis "
    "alors poi subito depois entao en dan i potem oraz и затем потом і ve sonra lalu hay va roi agora ahora "
    "maintenant hidden solely either again so but therefore hereby automatically".split()
)
_SUBJECTS = frozenset(
    "i we they he she it who which that to did does could nobody anybody everyone somebody someone n't "
    "not never users people".split()
)
_TO = frozenset(
    "have has need needs sure remember are is ought forget supposed instructed required able order".split()
)


class RoleMark(NamedTuple):
    """The span of a word that fills roles, and the bits of these."""

    start: int
    end: int
    bits: int


class Sentence(NamedTuple):
    """A sentence, its start, its words, and the marks of words that fill roles."""

    text: str
    start: int
    words: list[str]
    marks: list[RoleMark]


class _Member(NamedTuple):
    """A member of a class: its words (".." for up to four), classes, and whether it is always an order."""

    first: str
    rest: tuple[str, ...]
    bits: int
    sure: bool


class _Rule(NamedTuple):
    message: str
    needs: int  # in the sentence
    near: int  # in it or beside it
    bars: int


class _Tables(NamedTuple):
    words: dict[str, int]  # classes by a word
    phrases: dict[str, list[_Member]]  # by the first word
    starts: dict[str, list[_Member]]  # by the first letters
    needles: dict[str, list[_Member]]  # by the first two characters
    orders: int  # the classes that count as an order only; the bit above each says that it is one
    names: dict[str, int]
    rules: tuple[_Rule, ...]


def find_intents(sentences: Sequence[Sentence]) -> Iterator[tuple[int, int, str]]:
    """Yield the intents in consecutive sentences, each with its start, end and name."""
    masks = [reduce(or_, (mark.bits for mark in sentence.marks), 0) for sentence in sentences]
    for index, sentence in enumerate(sentences):
        mask = masks[index]
        if not mask:
            continue
        near = reduce(or_, masks[max(0, index - 2) : index + 2])
        for rule in _tables().rules:
            matches = (
                mask & rule.needs == rule.needs and near & rule.near == rule.near and not mask & rule.bars
            )
            if matches and (span := _closest(sentence.marks, rule.needs)):
                yield *span, rule.message
                break


def read_sentences(text: str) -> list[Sentence]:
    """Return the sentences of a folded text in lower case, with the roles of their words."""
    text = text.replace("’", "'")
    return [_sentence(text, start, end) for start, end in sentences(text) if text[start:end].strip()]


@lru_cache(4096)
def roles(bits: int) -> tuple[str, ...]:
    """Return the names of the roles of a mark; "!" after one marks an order."""
    return tuple(
        f"#{name}!" if bits & bit << 1 else f"#{name}" for name, bit in _tables().names.items() if bits & bit
    )


def _closest(marks: list[RoleMark], needs: int) -> tuple[int, int] | None:
    """Return the span of the first marks that fill all roles, close together; None without any."""
    for index, (start, _, bits) in enumerate(marks):
        if not bits & needs:
            continue
        known, last = 0, start
        for _, end, more in marks[index:]:
            if end - start > _REACH:
                break
            if more & needs:
                known |= more & needs
                last = max(last, end)
            if known == needs:
                return start, last
    return None


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences; a long one is cut into parts."""
    start = 0
    for end in (*[match.end() for match in _END.finditer(text)], len(text)):
        yield from ((first, min(end, first + _LONGEST)) for first in range(start, end, _LONGEST))
        start = end


def _sentence(text: str, start: int, end: int) -> Sentence:
    """Return a sentence with the roles of its words."""
    tables = _tables()
    tokens = [(match.group(), *match.span()) for match in _TOKEN.finditer(text, start, end)]
    marks = []
    for index, (word, first, end_of_word) in enumerate(tokens):
        loose = tables.words.get(word, 0)  # an order only where an order stands
        starts, phrases = tables.starts.get(word[:HEAD], ()), tables.phrases.get(word, ())
        if not (loose or starts or phrases):
            continue
        sure, last = 0, end_of_word
        for member in (*starts, *phrases):
            if length := _matches(member, tokens, index):
                last = max(last, tokens[index + length - 1][2])
                if member.sure:
                    sure |= member.bits
                else:
                    loose |= member.bits
        if loose & tables.orders and _is_order(text, tokens, index):
            sure |= loose
        if loose | sure:
            marks.append(RoleMark(first, last, loose | sure | (sure & tables.orders) << 1))
    marks += [RoleMark(*match.span(), tables.names["sink"]) for match in _ADDRESS.finditer(text, start, end)]
    for run in _UNSPACED.finditer(text, start, end) if not text.isascii() else ():
        marks += _needles(text, *run.span(), tables)
    return Sentence(text[start:end], start, [word for word, *_ in tokens], sorted(marks))


def _matches(member: _Member, tokens: list[tuple[str, int, int]], index: int) -> int:
    """Return how many words a member covers from an index on; 0 if it does not match."""
    if not _fits(tokens[index][0], member.first):
        return 0
    at = index + 1
    steps = 1
    for part in member.rest:
        if part == "..":
            steps = 5
            continue
        for step in range(at, min(at + steps, len(tokens))):
            if _fits(tokens[step][0], part):
                at = step + 1
                break
        else:
            return 0
        steps = 1
    return at - index


def _fits(word: str, part: str) -> bool:
    return word.startswith(part[:-1]) if part.endswith("*") else word == part


def _is_order(text: str, tokens: list[tuple[str, int, int]], index: int) -> bool:
    """Return whether a verb is in the position of an imperative."""
    if index == 0:
        return True
    before = tokens[index - 1]
    if not _CLAUSE.isdisjoint(text[before[2] : tokens[index][1]]):
        return True
    earlier = tokens[index - 2][0] if index > 1 else ""
    if before[0] == "to":
        return earlier in _TO
    if before[0] in _LEADS:
        return earlier not in _SUBJECTS
    return index == len(tokens) - 1 and not tokens[index][0].isascii()


def _needles(text: str, start: int, end: int, tables: _Tables) -> Iterator[RoleMark]:
    for at in range(start, end):
        for key in (text[at : at + 2], text[at]):
            for member in tables.needles.get(key, ()):
                if text.startswith(member.first, at, end):
                    orders = member.bits & tables.orders
                    yield RoleMark(at, at + len(member.first), member.bits | orders << 1)


@cache
def _tables() -> _Tables:
    bits: dict[str, int] = {}
    words: dict[str, int] = {}
    phrases: dict[str, list[_Member]] = {}
    starts: dict[str, list[_Member]] = {}
    needles: dict[str, list[_Member]] = {}
    for line in table_lines("holdfast.safety", "intent_words.txt"):
        name, _, entries = line.partition(":")
        bit = bits.setdefault(name, 1 << 2 * len(bits))
        for form in chain.from_iterable(map(_forms, fold(entries).text.lower().split(" | "))):
            is_needle = form.startswith("*")
            first, *rest = [form[1:]] if is_needle else _MEMBER.findall(form)
            is_sure = is_needle or first.endswith("*") or not first.isascii()
            member = _Member(first, tuple(rest), bit, is_sure)
            if is_needle:
                needles.setdefault(first[:2], []).append(member)
            elif first.endswith("*"):
                starts.setdefault(first[:-1][:HEAD], []).append(member)
            elif rest or is_sure:
                phrases.setdefault(first, []).append(member)
            else:
                words[first] = words.get(first, 0) | bit
    orders = reduce(or_, (bit for name, bit in bits.items() if name.endswith("!")))
    return _Tables(words, phrases, starts, needles, orders, bits, tuple(_rules(bits)))


def _rules(bits: dict[str, int]) -> Iterator[_Rule]:
    for line in table_lines("holdfast.safety", "intents.txt"):
        message, _, classes = line.partition(" | ")
        needs = near = bars = 0
        for name in classes.split():
            bit = bits[name.lstrip("~-")]
            meant = bit << 1 if name.endswith("!") else bit
            if name.startswith("-"):
                bars |= bit
            elif name.startswith("~"):
                near |= meant
            else:
                needs |= meant
        yield _Rule(message, needs, near, bars)


def _forms(entry: str) -> Iterator[str]:
    """Yield the alternatives of a member: "(a/b) c" is "a c" and "b c"; "(a)? b" is "a b" and "b".

    >>> list(_forms("(a/b) c"))
    ['a c', 'b c']
    """
    parts = _CHOICE.findall(entry) if "(" in entry else [entry]
    choices = [
        [*part.strip("()?").split("/"), *([""] if part.endswith("?") else [])] if part[0] == "(" else [part]
        for part in parts
    ]
    for choice in product(*choices):
        yield " ".join("".join(choice).split())
