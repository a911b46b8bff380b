"""Review of pairs that merging left unsure: whether they say the same, or one is a later state.

The verdicts of the model are checked before anything is written: no value may be lost or invented, and the
user's own words stay as they are. All verdicts of one answer are one batch of changes, each with its reason,
which `undo` takes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import NamedTuple

from holdfast.dedup import LONGEST, loses
from holdfast.learning.job_context import JobContext, UnitResult, WorkUnit
from holdfast.learning.record_join import (
    LOST,
    MERGED,
    OVERHEAD,
    OWN_WORDS,
    UNSAFE,
    UPDATED,
    Join,
    ProposalRefused,
    about,
    accepted,
    entry,
    is_unsafe,
    proposals,
    proposed_reason,
    proposed_text,
    reworded,
    schema,
    write,
)
from holdfast.llm.json_answers import numbers_of, picked
from holdfast.llm.llm_request import LLMRequest, Unreadable
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.records.draft import rules_of
from holdfast.records.intake import Intake, has_right
from holdfast.store.message_rows import EPOCH
from holdfast.store.records import RecordFilter
from holdfast.types import Record

KIND = "judge"
_UNTOUCHED = ("constraint", "soul", "profile")
_FIELDS = {
    "pair": {"type": "integer"},
    "verdict": {"type": "string", "enum": ["same", "update", "both"]},
    "keep": {"type": "string", "enum": ["old", "new"]},
}
_SCHEMA = schema("verdicts", _FIELDS, ["pair", "verdict", "why"])


class _Pair(NamedTuple):
    """Two records that may say the same."""

    old: Record
    new: Record


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan requests for verdicts about the pairs of the jobs, `settings.pairs` at once.

    A pair that cannot be judged any more is left out and counted.
    """
    pairs, left_out = _pairs(context)
    prompt = context.prompt(KIND)
    most = context.settings.pairs
    for start in range(0, len(pairs), most):
        some = pairs[start : start + most]
        shown = "\n\n".join(f"Pair {number}: {_shown(pair)}" for number, pair in enumerate(some, 1))
        answer_tokens = OVERHEAD * len(some) + context.count_tokens(shown) // 2
        request = LLMRequest(KIND, prompt.fill(pairs=shown), _SCHEMA, prompt.label, answer_tokens)
        dropped = Counter[str]() if start else left_out
        yield WorkUnit(request, partial(_apply, context, prompt, some, dropped))
    if not pairs:
        yield WorkUnit(None, lambda _: write(context, (), left_out))


def _pairs(context: JobContext) -> tuple[list[_Pair], Counter[str]]:
    """Return the pairs of the jobs, and the number of those that are not to be judged, by reason."""
    intake = context.intake
    wanted = RecordFilter(ids=[one for job in context.jobs for one in job.records], agents=intake.agents)
    current = {one.id: one for one in context.read_records(wanted)}
    found, left_out = [], Counter[str]()
    for job in context.jobs:
        pair = [current[one] for one in job.records if one in current]
        if unfit := _unfit(pair, intake):
            left_out[unfit] += 1
        else:
            # What was said later is the later state, whichever came in first.
            came, known = pair
            is_late = (came.at or EPOCH) < (known.at or EPOCH)
            found.append(_Pair(came, known) if is_late else _Pair(known, came))
    return found, left_out


def _unfit(pair: Sequence[Record], intake: Intake) -> str:
    """Return why records are no pair to be judged, "" if they are."""
    if len(pair) != 2:
        return "gone"
    one, other = pair
    if (one.kind, one.target) != (other.kind, other.target):
        return "of different kinds"
    if one.kind in _UNTOUCHED or intake.by not in rules_of(intake.kinds, one.kind).writers:
        return "not to be touched"
    return "too long" if max(len(one.text), len(other.text)) > LONGEST else ""


def _shown(pair: _Pair) -> str:
    of = f" about {about(pair.old.target)}" if pair.old.target else ""
    old, new = (f"- {name} {entry(one)}" for name, one in (("old", pair.old), ("new", pair.new)))
    return f"two of the kind {escape(pair.old.kind, quote=False)}{of}\n{old}\n{new}"


def _apply(
    context: JobContext,
    prompt: PromptTemplate,
    pairs: Sequence[_Pair],
    left_out: Counter[str],
    answer: str | None,
) -> UnitResult:
    verdicts = _verdicts(answer or "", len(pairs))
    intake, provenance = context.intake, context.provenance(prompt.label)
    dropped = Counter(left_out)

    def read(numbered: tuple[int, _Pair]) -> Join | None:
        number, pair = numbered
        proposal = verdicts.get(number, {})
        verdict = _word(proposal, "verdict")
        if verdict in ("same", "update"):
            return (_same if verdict == "same" else _update)(pair, proposal, intake, provenance)
        dropped["no verdict"] += verdict != "both"
        return None

    joins = accepted(list(enumerate(pairs, 1)), read, dropped)
    missing = dropped["no verdict"]
    note = f"{missing} of {len(pairs)} pairs had no verdict; both records were kept." if missing else ""
    return write(context, joins, dropped, note)


def _verdicts(answer: str, pairs: int) -> dict[int, Mapping[str, object]]:
    """Return the first verdict for each pair.

    Raises:
        Unreadable: there is none for any of them.

    """
    found: dict[int, Mapping[str, object]] = {}
    for one in proposals(answer, "verdicts"):
        if isinstance(one, Mapping):
            for number in numbers_of(picked(one, "pair"))[:1]:
                found.setdefault(number, one)
    if not any(1 <= number <= pairs for number in found):
        raise Unreadable("it has a verdict for none of the pairs.")
    return found


def _word(proposal: Mapping[str, object], name: str) -> str:
    value = picked(proposal, name)
    return value.strip().casefold() if isinstance(value, str) else ""


def _same(
    pair: _Pair, proposal: Mapping[str, object], intake: Intake, provenance: Mapping[str, object]
) -> Join:
    """Return the join of two that say the same into the one that may stand for both."""
    preferred = tuple(reversed(pair)) if _word(proposal, "keep") == "new" else pair
    able = [
        one
        for one in preferred
        if all(_may_replace(one, other) and _is_as_wide(one, other) for other in pair)
    ]
    if not able:
        raise ProposalRefused(OWN_WORDS)
    why = proposed_reason(proposal, "they say the same")
    text = proposed_text(proposal)
    if text and all(one.by != "user" and one.text != text for one in pair):
        return Join(pair, able[0], reworded(able[0], text, pair, intake, provenance), MERGED, why)
    full = [one for one in able if not loses(one.text, [other.text for other in pair])]
    if not full:
        raise ProposalRefused(LOST)
    return Join(pair, full[0], full[0], MERGED, why)


def _update(
    pair: _Pair, proposal: Mapping[str, object], intake: Intake, provenance: Mapping[str, object]
) -> Join:
    """Return the join that puts the new text in the place of the old one; a text of the model is left out."""
    old, new = pair
    if not _may_replace(new, old):
        raise ProposalRefused(OWN_WORDS)
    if not _is_as_wide(old, new):
        raise ProposalRefused("of another agent")
    if new.by != "user" and is_unsafe(new.text, intake, new.kind):
        raise ProposalRefused(UNSAFE)
    after = replace(
        new,
        agent=old.agent,
        category=new.category or old.category,
        tags=new.tags or old.tags,
        meta={**old.meta, **new.meta, **provenance},
    )
    return Join(pair, old, after, UPDATED, proposed_reason(proposal, "it tells a later state"))


def _may_replace(one: Record, other: Record) -> bool:
    """Return whether a text may be kept instead of another: nobody's words yield to those of less right."""
    return has_right(one.by, other.by) >= 0


def _is_as_wide(one: Record, other: Record) -> bool:
    """Return whether all agents that know a record know this one as well."""
    return one.agent in ("", other.agent)
