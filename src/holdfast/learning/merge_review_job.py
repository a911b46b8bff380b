"""Judge the pairs that merging left unsure: whether two records say the same, or one of them tells a later state.

A model proposes; what it proposes is checked before anything is written: no value may be lost or invented, and the user's
own words stay as they are. All that one answer leads to is one batch of changes, each with its reason, which `undo` takes
back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from holdfast.dedup.statement_parser import LONGEST
from holdfast.dedup.value_preservation import loses
from holdfast.learning.job_context import Outcome, Unit
from holdfast.learning.record_join import MERGED, UPDATED, Join, is_unsafe, worded, write
from holdfast.learning.record_proposals import (
    LOST,
    OVERHEAD,
    OWN_WORDS,
    UNSAFE,
    Refused,
    about,
    entry,
    items,
    reason,
    schema,
    wording,
)
from holdfast.llm.json_answers import numbers_of, picked
from holdfast.llm.llm_request import LLMRequest, Unreadable
from holdfast.llm.prompt_files import load
from holdfast.records.draft import rules_of
from holdfast.store import records
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record

if TYPE_CHECKING:
    from holdfast.learning.job_context import Setting
    from holdfast.llm.prompt_files import PromptTemplate
    from holdfast.records.intake import Intake
    from holdfast.types import Job

_UNTOUCHED = ("constraint", "soul", "profile")
_SCHEMA = schema(
    "verdicts",
    {
        "pair": {"type": "integer"},
        "verdict": {"type": "string", "enum": ["same", "update", "both"]},
        "keep": {"type": "string", "enum": ["old", "new"]},
    },
    ["pair", "verdict", "why"],
)


class _Pair(NamedTuple):
    """Two records of which nobody knows yet whether they say the same."""

    old: Record
    new: Record


def plan(
    setting: Setting,
    jobs: Sequence[Job],
    payload: Mapping[str, object],  # noqa: ARG001 - all kinds of jobs are planned with it
) -> Iterator[Unit]:
    """Ask for verdicts about the pairs that jobs are about, `setting.learning.pairs` at once.

    A pair that cannot be judged any more is left out and counted.
    """
    pairs, left_out = _pairs(setting, jobs)
    prompt = load("judge", setting.prompts.get("judge"))
    most = setting.learning.pairs
    for start in range(0, len(pairs), most):
        some = pairs[start : start + most]
        shown = "\n\n".join(f"Pair {number}: {_shown(pair)}" for number, pair in enumerate(some, 1))
        question = LLMRequest(
            "judge",
            prompt.fill(pairs=shown),
            _SCHEMA,
            prompt.label,
            answer_tokens=OVERHEAD * len(some) + setting.count(shown) // 2,
        )
        dropped = Counter[str]() if start else left_out
        yield Unit(question, partial(_apply, setting, prompt, some, dropped))
    if not pairs:
        yield Unit(None, lambda _: write(setting, (), left_out))


def _pairs(setting: Setting, jobs: Sequence[Job]) -> tuple[list[_Pair], Counter[str]]:
    """Read the pairs of jobs; those that are not to be judged are counted by their reason."""
    intake = setting.intake(setting.scope)
    wanted = RecordFilter(ids=[one for job in jobs for one in job.records], agents=intake.agents)
    there = {one.id: one for one in records.read(setting.database, setting.space, NOW.version, wanted)}
    found, left_out = [], Counter[str]()
    for job in jobs:
        pair = [there[one] for one in job.records if one in there]
        unfit = _unfit(pair, intake)
        if unfit:
            left_out[unfit] += 1
        else:
            found.append(_Pair(new=pair[0], old=pair[1]))
    return found, left_out


def _unfit(pair: Sequence[Record], intake: Intake) -> str:
    """Say why records are no pair to be judged, "" if they are."""
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
    setting: Setting,
    prompt: PromptTemplate,
    pairs: Sequence[_Pair],
    left_out: Counter[str],
    answer: str | None,
) -> Outcome:
    verdicts = _verdicts(answer or "", len(pairs))
    intake = setting.intake(setting.scope)
    signed = setting.signed(prompt.label)
    counted = Counter(left_out)
    joins = []
    for number, pair in enumerate(pairs, 1):
        given = verdicts.get(number, {})
        verdict = _word(given, "verdict")
        try:
            if verdict == "same":
                joins.append(_same(pair, given, intake, signed))
            elif verdict == "update":
                joins.append(_update(pair, given, intake, signed))
            elif verdict != "both":
                counted["no verdict"] += 1
        except Refused as refused:
            counted[str(refused)] += 1
    missing = counted["no verdict"]
    note = f"{missing} of {len(pairs)} pairs had no verdict; both records were kept." if missing else ""
    return write(setting, joins, counted, note)


def _verdicts(answer: str, pairs: int) -> dict[int, Mapping[str, object]]:
    """Read the first verdict for each pair.

    Raises:
        Unreadable: it has none for any of them.

    """
    found: dict[int, Mapping[str, object]] = {}
    for one in items(answer, "verdicts"):
        if isinstance(one, Mapping):
            for number in numbers_of(picked(one, "pair"))[:1]:
                found.setdefault(number, one)
    if not any(1 <= number <= pairs for number in found):
        raise Unreadable("it has a verdict for none of the pairs.")
    return found


def _word(given: Mapping[str, object], name: str) -> str:
    value = picked(given, name)
    return value.strip().casefold() if isinstance(value, str) else ""


def _same(pair: _Pair, given: Mapping[str, object], intake: Intake, signed: Mapping[str, object]) -> Join:
    """Keep the one of two that say the same which may stand for both; of two that may, the wished one."""
    wished = tuple(reversed(pair)) if _word(given, "keep") == "new" else pair
    able = [
        one for one in wished if all(_may_replace(one, other) and _is_as_wide(one, other) for other in pair)
    ]
    if not able:
        raise Refused(OWN_WORDS)
    why = reason(given, "they say the same")
    text = wording(given)
    if text and all(one.by != "user" and one.text != text for one in pair):
        return Join(pair, able[0], worded(able[0], text, pair, intake, signed), MERGED, why)
    full = [one for one in able if not loses(one.text, [other.text for other in pair])]
    if not full:
        raise Refused(LOST)
    return Join(pair, full[0], full[0], MERGED, why)


def _update(pair: _Pair, given: Mapping[str, object], intake: Intake, signed: Mapping[str, object]) -> Join:
    """Put what the new one says in the place of the old one; a wording beside it is left out."""
    old, new = pair
    if not _may_replace(new, old):
        raise Refused(OWN_WORDS)
    if not _is_as_wide(old, new):
        raise Refused("of another agent")
    if new.by != "user" and is_unsafe(new.text, intake, new.kind):
        raise Refused(UNSAFE)
    after = replace(
        new,
        agent=old.agent,
        category=new.category or old.category,
        tags=new.tags or old.tags,
        meta={**old.meta, **new.meta, **signed},
    )
    return Join(pair, old, after, UPDATED, reason(given, "it tells a later state"))


def _may_replace(one: Record, other: Record) -> bool:
    """Say whether a text may be kept instead of another: the user's own words give way to nobody else's."""
    return one.by == "user" or other.by != "user"


def _is_as_wide(one: Record, other: Record) -> bool:
    """Say whether all agents that know a record know this one as well."""
    return one.agent in ("", other.agent)
