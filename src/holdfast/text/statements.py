"""Statements whose form leaves no doubt that they are worth keeping: requests, orders, decisions, causes.

What is said is not looked at, only how: the table `statement_forms.txt` has the wordings, by language. A
sentence counts as a whole and alone, so one that leans on another, is a question, or is not meant so is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from holdfast.text.statement_spans import Span, spans
from holdfast.text.tables import table_lines

StatementKind = Literal["request", "order", "decision", "personal", "cause"]

_LONGEST = 400  # characters of a sentence
_FEWEST = 3  # words of one, but for what is marked as a decision or asked to be remembered
_NEAR = 5  # words among which a pronoun leans on another sentence
_LETTER = r"[^\W_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"  # of scripts with spaces
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")
_QUESTION = re.compile(r"[?？][\"'”’)*_` ]*\Z")
_OPEN = re.compile(r"[:：][\"'”’)*_` ]*\Z")
_QUOTED = re.compile(r"\W*[\"“„«「『].*[\"”“»」』]\W*")
_CLAUSE = re.compile(r"[,;(，、] ?| [-—–] |\b(?:so|and|but)\b", re.IGNORECASE)
_OF_OTHERS = re.compile(
    r"\W*(?:you\b(?! (?:\w+ )?(?:should|must|always|never|need|have))|th(?:is|at|ese|ose) (?:is|are|was)\b)",
    re.IGNORECASE,
)
_MARKS = " .!?。！？)"
# Diffs, logs, prompts of a shell, and what has columns.
_SHOWN = re.compile(
    r"[\[$>%#✓▕}{@+=\\]|-{2,}|\d{4}-\d\d|\d\d?:\d\d|\w{1,20}@\w|\S*[\\/]\S+\s*\Z|"
    r"(?!(?:PLEASE|REMEMBER|ALWAYS|NEVER)\b)[A-Z]{4,}\b[: ]|"
    r".*(?:   |\t|[\u2500-\u259f✓✗●⎿])"
)


class PlainStatement(NamedTuple):
    """A statement of a message: its place in the text, and its kind."""

    start: int
    end: int
    kind: StatementKind


def statements(text: str, *, by_user: bool, is_work: bool = False) -> list[PlainStatement]:
    """Return the statements of a message in their order; of an assistant's only decisions and causes.

    In a session of work what is liked, and what is only noted, is of the moment.

    >>> said = "Thanks! From now on, answer in French. Is it done?"
    >>> [(kind, said[start:end]) for start, end, kind in statements(said, by_user=True)]
    [('order', 'From now on, answer in French.')]
    """
    sentences = [sentence for sentence in spans(text) if sentence.line not in ("row", "quote", "heading")]
    by_start: dict[int, PlainStatement] = {}
    done = 0
    for place, span in enumerate(sentences):
        if span.start < done or span.end - span.start > _LONGEST or _SHOWN.match(text, span.start, span.end):
            continue
        said = _plain(text, span)
        is_cited = by_user and _after(said, "cites") is not None
        first = _request(text, sentences, place, said, is_work=is_work) if by_user and not is_cited else None
        if is_cited or (by_user and first is None and _points(text, sentences, place, said)):
            # Somebody's text stands behind this sentence, or in another paragraph before the last one.
            if span is not sentences[-1] or not _has("reworks", said):
                break
            items = {sentence.start for sentence in sentences if sentence.line == "item"}
            return sorted(
                statement
                for statement in by_start.values()
                if statement.start not in items and "\n\n" not in text[statement.end : span.start]
            )
        if first:
            done = _listed_until(text, sentences, place) if _OPEN.search(said) else span.end
            by_start[first.start] = PlainStatement(first.start, done, "request")
        elif span.start not in by_start and (kind := _kind(said, by_user=by_user, is_work=is_work)):
            by_start[span.start] = PlainStatement(span.start, span.end, kind)
    return sorted(by_start.values())


def takes_back(sentence: str, *more: Literal["negates", "corrects"]) -> bool:
    """Return whether a sentence takes back what its speaker said just before.

    Where it answers nothing it does so also if it "negates", and in the same breath if it "corrects".

    >>> takes_back("Scratch that, Tuesdays."), takes_back("The scratch is gone.")
    (True, False)
    >>> takes_back("Hmm, actually blue."), takes_back("Hmm, actually blue.", "corrects")
    (False, True)
    """
    said = sentence[:_LONGEST].replace("’", "'")
    return any(_after(said, form) is not None for form in ("retracts", *more))


def revokes(sentence: str) -> bool:
    """Return whether a sentence ends something said before, and repeats a word of it."""
    return _after(sentence[:_LONGEST].replace("’", "'"), "revokes") is not None


def is_chat_log(text: str) -> bool:
    """Return whether a text has lines of a log of what people say to each other."""
    return _has("logs", text)


def is_reminder(text: str) -> bool:
    """Return whether a whole message only asks to think of doing something."""
    sentences = list(spans(text[: _LONGEST + 1]))
    is_one = len(text) <= _LONGEST and len(sentences) == 1
    return is_one and _after(_plain(text, sentences[0]), "reminds") is not None


def _points(text: str, sentences: list[Span], place: int, said: str) -> bool:
    """Return whether a sentence is about a text beside it: it says so, or its colon begins no list."""
    _, end, _ = sentences[place]
    behind = sentences[place + 1 : place + 2]
    if behind and _OPEN.search(said):
        return behind[0].line != "item" or _has("edits", said)
    ends_line = not behind or "\n" in text[end : behind[0].start]
    return (ends_line or _QUESTION.search(said) is not None) and _has("points" if behind else "reworks", said)


def _plain(text: str, span: Span) -> str:
    return text[span.start : span.end].replace("’", "'").replace("**", "").strip("*_ ¿¡")


def _listed_until(text: str, sentences: list[Span], place: int) -> int:
    """Return the end of what follows a colon: the next sentence, and those behind it on the same line."""
    start, (_, end, _), *others = sentences[place].start, *sentences[place + 1 :]
    for span in others:
        if "\n" in text[end : span.start] or span.end - start > _LONGEST:
            break
        end = span.end
    return end


def _request(text: str, sentences: list[Span], place: int, said: str, *, is_work: bool) -> Span | None:
    """Return the sentence with which a request to remember begins: this one, or the one before it."""
    if _QUOTED.fullmatch(said) or _has("unsaid", said):
        return None
    here, is_question = sentences[place], _QUESTION.search(said) is not None and not _has("begs", said)
    for start in (0, *(clause.end() for clause in _CLAUSE.finditer(said))):
        content = _after(said[start:], "asks")
        is_aside = is_work and _after(said[start:], "asides") is not None
        is_there = place + 1 < len(sentences) if _OPEN.search(said) else _WORD.search(content or "")
        if content is not None and is_there and not is_aside:
            is_told = not is_question or _form("filler").match(said) is not None
            return here if is_told and not _OF_OTHERS.match(content) else None
    if is_question:
        return None
    if place and _is_whole(said, "asked"):
        before = sentences[place - 1]
        is_told = before.end - before.start <= _LONGEST and not _QUESTION.search(_plain(text, before))
        return before if is_told else None
    return here if _ends(said, "asked") else None


def _kind(said: str, *, by_user: bool, is_work: bool) -> StatementKind | None:
    """Return the kind of a sentence by its form, None if it is no statement."""
    words = _WORD.findall(said)
    if _QUESTION.search(said) or _OPEN.search(said) or _QUOTED.search(said) or _has("unsaid", said):
        return None
    decided = _after(said, "decides")
    if decided is None and by_user:
        decided = _after(said, "chooses")
    if decided is not None:
        is_open = _form("undecided").match(decided.lstrip()) is not None
        return "decision" if not is_open and _stands_alone(said, decided or said) else None
    if len(words) < _FEWEST or _has("unreal", said):
        return None
    if _after(said, "explains") is not None:
        return "cause" if _stands_alone(said, said) and len(words) > 2 * _FEWEST else None
    if not by_user or not _stands_alone(said, said):
        return None
    if _orders(said):
        return "order"
    if is_work and _after(said, "likes") is not None and not _has("general", said):
        return None
    return "personal" if _after(said, "owns") is not None and not _has("passing", said) else None


def _orders(said: str) -> bool:
    """Return whether a sentence is an order that stands."""
    if _has("henceforth", said):
        return not _has("tells", said)
    if not _has("stands", said) or _has("narrates", said):
        return False
    return _after(said, "opens") is not None or _after(said, "verb") is not None


def _stands_alone(said: str, content: str) -> bool:
    """Return whether a sentence is understood without another one."""
    rest = _form("whole").sub(" ", content)
    near = max((word.end() for word in [*_WORD.finditer(rest)][:_NEAR]), default=0)
    leans = any(match.start() < near for match in _form("leans").finditer(rest))
    return not leans and not _has("unreal", said)


def _has(name: str, said: str) -> bool:
    return _form(name).search(said) is not None


def _is_whole(said: str, name: str) -> bool:
    """Return whether a sentence is nothing but a form, with at most two words of its own."""
    is_short = len(_WORD.findall(said)) < 3 * _FEWEST
    return is_short and any(_form(name).fullmatch(start.strip(_MARKS)) for start in _starts(said))


def _ends(said: str, name: str) -> bool:
    """Return whether the last clause of a sentence has a form, or all of it where no space parts clauses."""
    bare = said.rstrip(_MARKS)
    *others, last = _CLAUSE.split(bare)
    if others and any(_form(name).fullmatch(start) for start in _starts(last.strip())):
        return True
    return not re.match(_LETTER, bare) and _form(name).fullmatch(bare) is not None


def _after(said: str, name: str) -> str | None:
    """Return what follows a form at the beginning of a sentence or after filler; None if it is not there."""
    for start in _starts(said.strip()):
        if match := _form(name).match(start):
            return start[match.end() :]
    return None


def _starts(said: str) -> Iterator[str]:
    """Yield a sentence, and what is left of it after each filler at its beginning."""
    yield said
    while (match := _form("filler").match(said)) and match.end() < len(said):
        said = said[match.end() :].lstrip(" ,.!:;…—–-、，！。")
        yield said


@cache
def _form(name: str) -> re.Pattern[str]:
    wordings = re.sub(r"'(?=(?:m|ve|t)\b)|(?<=let)'(?=s\b)", "'?", _alternatives(name))
    # Ranges of letters take long to compile where case is ignored.
    edge = rf"(?-i:(?<!{_LETTER})|(?!{_LETTER}))"
    return re.compile(f"{edge}(?:{wordings}){edge}", re.IGNORECASE)


def _alternatives(name: str) -> str:
    wordings = "|".join(line.partition(": ")[2] for line in _lines() if line.startswith(f"{name}: "))
    return re.sub(r"<(\w+)>", lambda part: f"(?:{_alternatives(part[1])})", wordings)


@cache
def _lines() -> list[str]:
    return table_lines("holdfast.text", "statement_forms.txt")
