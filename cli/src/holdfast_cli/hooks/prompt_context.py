"""The context of a prompt from memory: a few likely hits, dated, framed as data, each once a session."""

from collections.abc import Container
from typing import NamedTuple

from holdfast import Memory
from holdfast.port import prompts
from holdfast.port.texts import estimate_tokens
from holdfast.types import Hit, Scope, Source
from holdfast.types.references import noted, write_reference

# Scores are probabilities: a hit is shown that is right at least about every second time, as the benchmark of
# calibration measures it for hits of 0.3 and more.
LIKELY = 0.3
MOST, TOKENS = 5, 1_000
_SOURCES = 60  # tokens for the line that names them
_LOOKED_AT = 24  # hits of which those are chosen that may be shown
_QUERY = 2_000  # characters of a prompt that are looked up: its beginning and its end
# What the guard finds that may do harm, and what waits for the user.
_HARMFUL = frozenset(("instruction", "disguise", "invisible", "quarantined"))
_SHOWN_WHOLE = frozenset(("constraint", "profile", "soul"))


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
    if not prompts.has_words(query):
        return HookContext()
    sources: tuple[Source, ...] = ("message", "record")
    # What the session has itself would take the place of what it has not.
    hits = memory.recall(query, limit=_LOOKED_AT, sources=sources, outside=session, min_score=LIKELY)
    chosen: list[Hit] = []
    scope = memory.scope
    for hit in hits:
        if len(chosen) == MOST or any(_is_of(hit, earlier) for earlier in chosen):
            continue
        if _may_be_shown(hit, before, scope):
            chosen.append(hit)
    block = prompts.recall_block(memory, session, chosen, TOKENS - _SOURCES)
    if not block.entries:
        return HookContext()
    shown = [entry.hit for entry in block.entries]
    text = f"{block.text}\nSources: {', '.join(_names(hit, scope)[0] for hit in shown)}"
    names = tuple(dict.fromkeys(name for hit in shown for name in _names(hit, scope)))
    return HookContext(text, names, estimate_tokens(text))


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
    if hit.kind in _SHOWN_WHOLE or any(name in before for name in _names(hit, scope)):
        return False
    # Read last: what finds flags takes time.
    return not _HARMFUL & set(hit.flags)
