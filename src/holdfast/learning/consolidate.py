"""Join facts that say parts of the same.

A model proposes; what it proposes is checked before anything is written: no value may be lost or invented, the user's own
words stay as they are, and there are never more facts than before. All that one answer leads to is one batch of changes,
each with its reason, which `undo` takes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.learning.job_context import Mark, Outcome, Unit
from holdfast.learning.record_join import MERGED, Join, worded, write
from holdfast.learning.record_proposals import (
    LOST,
    OVERHEAD,
    OWN_WORDS,
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
from holdfast.records.draft import allow, rules_of
from holdfast.store import records, watermarks
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Record

if TYPE_CHECKING:
    from holdfast.learning.job_context import Setting
    from holdfast.llm.prompt_files import PromptTemplate
    from holdfast.records.intake import Intake
    from holdfast.types import Job

_SCHEMA = schema(
    "changes", {"facts": {"type": "array", "items": {"type": "integer"}}}, ["facts", "text", "why"]
)


_SHOWN = 8_000  # characters of facts that one question is about: as many as a prompt shows


def due(setting: Setting) -> bool:
    """Say whether the agent has facts that could be joined, and one of them was written since it was last seen to.

    That some were joined is no news.
    """
    seen = watermarks.read(setting.database, setting.space, "", _mark_of(setting))
    scope = setting.scope
    if not records.changed_since(setting.database, scope.space, "fact", scope.agent, seen, but=MERGED):
        return False
    return any(_is_news(facts, seen) for groups in _facts(setting).values() for facts in groups)


def plan(
    setting: Setting,
    jobs: Sequence[Job],  # noqa: ARG001 - all kinds of jobs are planned with these
    payload: Mapping[str, object],
) -> Iterator[Unit]:
    """Ask which facts of the agent can be joined: of those about the user, then of those about the environment.

    Where the payload names a target, only of those about that; then the watermark stays, as the others were not looked at.

    Where there are many, a question is about facts that were first written one after the other, and only asked if one of
    them is news. The watermark moves with the last of the questions, to the version that the space had before the facts were read;
    where no two facts are about the same, it moves without a question.

    Raises:
        Denied: those for whom this is done may not change facts.

    """
    target_only = payload.get("target")
    mark = Mark("", _mark_of(setting), records.version(setting.database, setting.space))
    passed = () if target_only else (mark,)
    intake = setting.intake(setting.scope)
    allow(rules_of(intake.kinds, "fact"), intake.by, "change")
    seen = watermarks.read(setting.database, setting.space, "", mark.kind)
    asked = [
        (target, facts)
        for target, groups in _facts(setting).items()
        for facts in groups
        if target_only in (None, target)
        if len(groups) == 1 or _is_news(facts, seen)
    ]
    prompt = load("consolidate", setting.prompts.get("consolidate"))
    for place, (target, facts) in enumerate(asked, 1):
        shown = "\n".join(f"{number}. {entry(fact)}" for number, fact in enumerate(facts, 1))
        question = LLMRequest(
            "consolidate",
            prompt.fill(target=about(target), facts=shown),
            _SCHEMA,
            prompt.label,
            answer_tokens=OVERHEAD + setting.count(shown),
        )
        marks = passed if place == len(asked) else ()
        yield Unit(question, partial(_apply, setting, prompt, facts, marks))
    if not asked:
        yield Unit(None, lambda _: write(setting, (), {}, marks=passed))


def _mark_of(setting: Setting) -> str:
    return f"consolidate:{setting.scope.agent}"


def _is_news(facts: Sequence[Record], seen: int) -> bool:
    return any(fact.version > seen and fact.action != MERGED for fact in facts)


def _facts(setting: Setting) -> dict[str, list[list[Record]]]:
    """Read the facts of the agent in groups of two or more, by what they are about.

    Those of no agent are left to themselves: joined with them, what one agent knows would be known to all.
    """
    wanted = RecordFilter(kinds=("fact",), agents=(setting.scope.agent,), trust=("trusted",))
    found: dict[str, list[Record]] = {}
    for fact in records.read(setting.database, setting.space, NOW.version, wanted):
        found.setdefault(fact.target, []).append(fact)
    groups = {
        target: [group for group in _grouped(facts) if len(group) > 1] for target, facts in found.items()
    }
    return {target: some for target, some in groups.items() if some}


def _grouped(facts: Sequence[Record]) -> Iterator[list[Record]]:
    group: list[Record] = []
    size = 0
    for fact in facts:
        size += len(fact.text)
        if group and size > _SHOWN:
            yield group
            group, size = [], len(fact.text)
        group.append(fact)
    yield group


def _apply(
    setting: Setting,
    prompt: PromptTemplate,
    facts: Sequence[Record],
    marks: Sequence[Mark],
    answer: str | None,
) -> Outcome:
    given = items(answer or "", "changes")
    changes = [one for one in given if isinstance(one, Mapping)]
    if given and not changes:
        raise Unreadable("none of its changes is an object.")
    intake = setting.intake(setting.scope)
    signed = setting.signed(prompt.label)
    counted = Counter({"no change": len(given) - len(changes)})
    unused = dict(enumerate(facts, 1))
    joins = []
    for change in changes:
        try:
            joins.append(_joined(_parts(change, len(facts), unused), change, intake, signed))
        except Refused as refused:
            counted[str(refused)] += 1
    return write(setting, joins, counted, marks=marks)


def _parts(given: Mapping[str, object], count: int, unused: dict[int, Record]) -> tuple[Record, ...]:
    """Take the facts that a change names, for good: so all changes of an answer take no longer than the facts allow."""
    numbers = sorted(set(numbers_of(picked(given, "facts"))))
    if len(numbers) < 2 or not 1 <= numbers[0] <= numbers[-1] <= count:
        raise Refused("no such facts")
    if not unused.keys() >= set(numbers):
        raise Refused("used twice")
    return tuple(unused.pop(number) for number in numbers)


def _joined(
    parts: tuple[Record, ...], given: Mapping[str, object], intake: Intake, signed: Mapping[str, object]
) -> Join:
    """Join facts into the oldest of them."""
    if len({(one.since, one.until) for one in parts}) > 1:
        raise Refused(LOST)
    text = wording(given)
    spoken = next((one for one in parts if one.by == "user" and one.text == text), None)
    if spoken is None and any(one.by == "user" for one in parts):
        raise Refused(OWN_WORDS)
    after = worded(parts[0], text, parts, intake, signed, spoken)
    return Join(parts, parts[0], after, MERGED, reason(given, "they say parts of one thing"))
