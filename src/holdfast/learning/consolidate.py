"""Consolidation: join facts that say parts of the same.

The proposals of the model are checked before anything is written: no value may be lost or invented, the
user's own words stay as they are, and there are never more facts than before. All joins of one answer are one
batch of changes, each with its reason, which `undo` takes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from holdfast.learning.extraction_prompt import packed
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.learning.record_join import (
    LOST,
    MERGED,
    OVERHEAD,
    OWN_WORDS,
    Join,
    ProposalRefused,
    about,
    accepted,
    entry,
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
from holdfast.records.draft import allow, rules_of
from holdfast.store import records
from holdfast.store.records import RecordFilter
from holdfast.types import Record

KIND = "consolidate"
_SCHEMA = schema(
    "changes", {"facts": {"type": "array", "items": {"type": "integer"}}}, ["facts", "text", "why"]
)
_SHOWN = 8_000  # characters of facts in one prompt


def due(context: JobContext) -> bool:
    """Return whether the agent has facts that could be joined, one of them written since the watermark.

    A join is no news.
    """
    seen = context.watermark("", _watermark_kind(context))
    scope = context.scope
    if not records.changed_since(context.database, scope.space, "fact", scope.agent, seen, but=MERGED):
        return False
    return any(_is_news(facts, seen) for groups in _fact_groups(context).values() for facts in groups)


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan which facts of the agent to ask about: those about the user, then those about the environment.

    Where the payload names a target, only those about it; then the watermark stays, as the others were not
    looked at.

    Where there are many, a request is about facts that were first written one after the other, and only made
    if one of them is news. The watermark moves with the last request, to the version that the space had
    before the facts were read. Where no two facts are about the same, it moves without a request.

    Raises:
        Denied: the learner may not change facts.

    """
    target_only = context.payload.get("target")
    mark = Watermark("", _watermark_kind(context), records.version(context.database, context.space))
    done = () if target_only else (mark,)
    intake = context.intake
    allow(rules_of(intake.kinds, "fact"), intake.by, "change")
    seen = context.watermark("", mark.kind)
    chosen = [
        (target, facts)
        for target, groups in _fact_groups(context).items()
        for facts in groups
        if target_only in (None, target)
        if len(groups) == 1 or _is_news(facts, seen)
    ]
    prompt = context.prompt(KIND)
    for number, (target, facts) in enumerate(chosen, 1):
        marks = done if number == len(chosen) else ()
        yield WorkUnit(
            _request(context, prompt, target, facts), partial(_apply, context, prompt, facts, marks)
        )
    if not chosen:
        yield context.pass_over("", *done)


def _watermark_kind(context: JobContext) -> str:
    return f"{KIND}:{context.scope.agent}"


def _is_news(facts: Sequence[Record], seen: int) -> bool:
    return any(fact.version > seen and fact.action != MERGED for fact in facts)


def _fact_groups(context: JobContext) -> dict[str, list[list[Record]]]:
    """Return the facts of the agent by target, in groups of two or more that fit one prompt.

    Facts of no agent are left alone: joined with them, what one agent knows would be known to all.
    """
    found: dict[str, list[Record]] = {}
    for fact in context.read_records(
        RecordFilter(("fact",), agents=(context.scope.agent,), trust=("trusted",))
    ):
        found.setdefault(fact.target, []).append(fact)
    groups = {
        target: [group for group in packed(facts, lambda fact: len(fact.text), _SHOWN) if len(group) > 1]
        for target, facts in found.items()
    }
    return {target: some for target, some in groups.items() if some}


def _request(context: JobContext, prompt: PromptTemplate, target: str, facts: Sequence[Record]) -> LLMRequest:
    shown = "\n".join(f"{number}. {entry(fact)}" for number, fact in enumerate(facts, 1))
    filled = prompt.fill(target=about(target), facts=shown)
    return LLMRequest(KIND, filled, _SCHEMA, prompt.label, OVERHEAD + context.count_tokens(shown))


def _apply(
    context: JobContext,
    prompt: PromptTemplate,
    facts: Sequence[Record],
    done: Sequence[Watermark],
    answer: str | None,
) -> UnitResult:
    items = proposals(answer or "", "changes")
    changes = [one for one in items if isinstance(one, Mapping)]
    if items and not changes:
        raise Unreadable("none of its changes is an object.")
    dropped = Counter({"no change": len(items) - len(changes)})
    unused = dict(enumerate(facts, 1))

    def read(change: Mapping[str, object]) -> Join:
        return _joined(context, prompt, _taken(change, len(facts), unused), change)

    return write(context, accepted(changes, read, dropped), dropped, done=done)


def _taken(change: Mapping[str, object], count: int, unused: dict[int, Record]) -> tuple[Record, ...]:
    """Take the facts that a change names, for good: so the work for an answer is bounded."""
    numbers = sorted(set(numbers_of(picked(change, "facts"))))
    if len(numbers) < 2 or not 1 <= numbers[0] <= numbers[-1] <= count:
        raise ProposalRefused("no such facts")
    if not unused.keys() >= set(numbers):
        raise ProposalRefused("used twice")
    return tuple(unused.pop(number) for number in numbers)


def _joined(
    context: JobContext, prompt: PromptTemplate, parts: tuple[Record, ...], change: Mapping[str, object]
) -> Join:
    """Return the join of facts into the oldest of them."""
    if len({(one.since, one.until) for one in parts}) > 1:
        raise ProposalRefused(LOST)
    text = proposed_text(change)
    spoken = next((one for one in parts if one.by == "user" and one.text == text), None)
    if spoken is None and any(one.by == "user" for one in parts):
        raise ProposalRefused(OWN_WORDS)
    after = reworded(parts[0], text, parts, context.intake, context.provenance(prompt.label), spoken)
    return Join(parts, parts[0], after, MERGED, proposed_reason(change, "they say parts of one thing"))
