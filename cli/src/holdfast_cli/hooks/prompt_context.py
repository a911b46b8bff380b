"""The context of a prompt from memory: a few likely hits, dated, framed as data, each once a session."""

from collections.abc import Container, Iterator
from dataclasses import replace
from typing import NamedTuple

from holdfast import Memory
from holdfast.port import prompts
from holdfast.port.safety import mask
from holdfast.port.texts import estimate_tokens, find
from holdfast.types import Hit, Message, Scope, Source
from holdfast.types.references import noted, write_reference
from holdfast_cli.hooks.small_talk import asks_for_nothing

# Scores are probabilities that a hit answers: one is shown that is right at least about every second time, as
# the benchmark of calibration measures it for hits of 0.3 and more. What asks nothing mostly goes on with its
# own session: of real prompts that are no questions, no hit below 0.5 helped.
LIKELY, SURE = 0.3, 0.5
MOST, TOKENS = 5, 1_000
_SOURCES = 60  # tokens for the line that names them
_LOOKED_AT = 24  # hits of which those are chosen that may be shown
_QUERY = 2_000  # characters of a prompt that are looked up: its beginning and its end
_QUESTION = 4_000  # characters of a message that may be no more than a question
_TURN = 200  # messages after a question, of which the last one answers it
# What the guard finds that may do harm, and what waits for the user.
_HARMFUL = frozenset(("instruction", "disguise", "invisible", "quarantined"))
# What the start of a session shows whole; and episodes, which say what was asked in all of a session: what
# answers is in its messages, and was learned from them.
_LEFT_OUT = frozenset(("constraint", "profile", "soul", "episode"))


class HookContext(NamedTuple):
    """A text for a model, what it shows by the names of `Message.shown`, and its estimated tokens."""

    text: str = ""
    shown: tuple[str, ...] = ()
    tokens: int = 0


def prompt_context(memory: Memory, prompt: str, session: str, before: Container[str]) -> HookContext:
    """Return the context of a prompt, without hits of its own session and those shown `before`.

    What the start of a session shows whole is left out as well.
    """
    query = prompt if len(prompt) <= _QUERY else f"{prompt[: _QUERY - 500]}\n{prompt[-500:]}"
    if not prompts.is_searchable(query):
        return HookContext()
    sources: tuple[Source, ...] = ("message", "record")
    bar = LIKELY if prompts.parts_of(query).asks else SURE
    # What the session has itself would take the place of what it has not.
    hits = memory.recall(query, limit=_LOOKED_AT, sources=sources, outside=session, min_score=bar)
    chosen: list[Hit] = []
    scope = memory.scope
    for hit in _telling(memory, hits):
        if len(chosen) == MOST:
            break
        if not any(_is_of(hit, earlier) for earlier in chosen) and _may_be_shown(hit, before, scope):
            chosen.append(hit)
    block = prompts.recall_block(memory, session, chosen, TOKENS - _SOURCES)
    if not block.entries:
        return HookContext()
    shown = [entry.hit for entry in block.entries]
    text = f"{block.text}\nSources: {', '.join(_names(hit, scope)[0] for hit in shown)}"
    names = tuple(dict.fromkeys(name for hit in shown for name in _names(hit, scope)))
    return HookContext(text, names, estimate_tokens(text))


def _telling(memory: Memory, hits: list[Hit]) -> Iterator[Hit]:
    """Yield the hits that tell something: records, then messages, with or replaced by the answer to each."""
    for hit in sorted(hits, key=lambda hit: hit.source == "message"):
        if hit.why.words and asks_for_nothing(" ".join(hit.why.words)):
            continue
        tells, asks = _tells_and_asks(hit)
        if tells:
            yield hit
        if asks and (answer := _answer(memory, hit)):
            yield replace(
                hit,
                text=answer.content,
                id=answer.id,
                seq=answer.seq,
                role=answer.role,
                name=answer.name,
                at=answer.at.astimezone(hit.at.tzinfo) if answer.at else hit.at,
                flags=answer.flags,
                times=1,
                last=None,
            )


def _tells_and_asks(hit: Hit) -> tuple[bool, bool]:
    """Return whether what matched in a hit tells something, and whether an answer belongs to it."""
    if hit.source == "record" or hit.role == "tool":
        return hit.source == "record", False
    if len(hit.text) > _QUESTION or not (parts := prompts.parts_of(hit.text)).asks:
        return True, False
    if hit.role == "assistant":
        # It may ask at the end of a report.
        return bool(parts.told), not parts.told
    own, every = (
        {text[start:end].casefold() for start, end in find(text, hit.why.words)}
        for text in (parts.told, hit.text)
    )
    return bool(parts.told) and 2 * len(own) >= len(every), True


def _answer(memory: Memory, hit: Hit) -> Message | None:
    """Return the last message that tells something before who asked speaks again, None for none."""
    place = memory.scope.named(hit.space)
    if place.space != memory.scope.space:
        memory = memory.scoped(user=place.user, project=place.project, team=place.team)
    answer = None
    turn = memory.chat(hit.chat).history(after=hit.seq, limit=_TURN)
    for message in turn:
        if message.actor == hit.actor:
            return answer
        if message.role != "tool" and _may_answer(message, hit):
            answer = mask(message)
    # What is still going on has no answer yet.
    return answer if len(turn) < _TURN else None


def _may_answer(message: Message, question: Hit) -> bool:
    """Return whether a message tells something; that of a person, who may change the subject, on the same."""
    if asks_for_nothing(message.content) or not prompts.parts_of(message.content).told:
        return False
    words = [word for word in question.text.split() if not asks_for_nothing(word)]
    return message.role == "assistant" or bool(find(message.content, words))


def _names(hit: Hit, scope: Scope) -> list[str]:
    """Return the name of a hit as in `Message.shown`, and of a record that of what it was learned from."""
    message = noted(write_reference(hit.chat, hit.seq), scope.named(hit.space).space, scope)
    if hit.source == "record":
        return [hit.id, message] if hit.chat and hit.seq else [hit.id]
    return [message]


def _is_of(hit: Hit, other: Hit) -> bool:
    """Return whether one of two hits was learned from the other, or both have the same text."""
    if hit.text.strip() == other.text.strip():
        return True
    if hit.source == other.source or (hit.space, hit.chat) != (other.space, other.chat):
        return False
    return hit.seq <= max(other.seq, other.last_seq) and other.seq <= max(hit.seq, hit.last_seq)


def _may_be_shown(hit: Hit, before: Container[str], scope: Scope) -> bool:
    if hit.kind in _LEFT_OUT or any(name in before for name in _names(hit, scope)):
        return False
    # Read last: what finds flags takes time.
    return not _HARMFUL & set(hit.flags)
