"""What every prompt of a chat shows of the records, read as of its snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from holdfast.prompt.knowledge_block import KnowledgeBlock, fitting_records, knowledge_text, target_name
from holdfast.store import records
from holdfast.store.message_rows import from_micros
from holdfast.store.records import RecordFilter, RecordOutline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.kinds import Kind
    from holdfast.store.database import Database
    from holdfast.store.snapshots import Snapshot
    from holdfast.types import Record, Scope

# Who writes what comes from a session, whatever it was about.
_OF_ANY_PROJECT = ("agent", "tool", "import", "reflect")


def known_at(
    database: Database,
    scope: Scope,
    kinds: Mapping[str, Kind],
    snapshot: Snapshot,
    *,
    learned_elsewhere: bool = True,
) -> KnowledgeBlock:
    """Write what every prompt of a chat shows, as of its snapshot: of kinds with a budget, what fits it.

    Without `learned_elsewhere`, of these only what was learned from chats of the scope's own space, or what
    somebody wrote; of the user's space, where it may be of any project, only what no session wrote, or was
    released.
    """
    agents = tuple(dict.fromkeys((scope.agent, "")))
    headed = [kind for kind in kinds.values() if kind.heading]
    whole = RecordFilter(kinds=tuple(kind.name for kind in headed if not kind.prompt_budget), agents=agents)
    at = from_micros(snapshot.at)
    parts: list[list[Record]] = []
    shown_ids: set[str] = set()
    omitted = Counter[str]()
    for space, (version, *_) in snapshot.moments(scope).items():
        found = records.read(database, space, version, whole) if version else []
        for kind in headed if version else ():
            if kind.prompt_budget:
                there = records.outlines(database, space, version, kind.name, agents)
                is_ours = learned_elsewhere or space == scope.space
                others = () if is_ours else _OF_ANY_PROJECT if space == scope.owner.space else ("reflect",)
                there = [one for one in there if _is_shown(one, snapshot.at, others)]
                chosen = fitting_records(kind, there)
                by_version = records.by_versions(database, space, [one.version for one in chosen])
                found += [by_version[one.version] for one in chosen if one.version in by_version]
                shown_ids |= {one.id for one in chosen}
                omitted += Counter(target_name(kind, one.target) for one in there)
                omitted -= Counter(target_name(kind, one.target) for one in chosen)
        true = [record for record in found if record.valid(at)]
        parts.append(_labelled(true, parts, scope.reference(space), kinds) if scope.is_layered else true)
    left = dict(omitted)
    text = knowledge_text(parts[0], list(chain(*parts[1:])), kinds, scope.agent, left)
    return KnowledgeBlock(text, frozenset(shown_ids), left)


def _labelled(
    found: list[Record], nearer: list[list[Record]], label: str, kinds: Mapping[str, Kind]
) -> list[Record]:
    """Return records with the name of their space, without those that a nearer space has as well.

    Of a kind with one text for each agent, a nearer space has it if it has any.
    """
    known = {(one.kind, one.target, one.text) for one in chain(*nearer)}
    single = {one.kind for one in chain(*nearer) if kinds[one.kind].one_per == "agent"}
    return [
        replace(one, space=label)
        for one in found
        if one.kind not in single and (one.kind, one.target, one.text) not in known
    ]


def _is_shown(one: RecordOutline, at: int, others: Sequence[str]) -> bool:
    """Return whether a record is true at a time, and by none of `others` unless it was released."""
    is_true = (one.since is None or one.since <= at) and (one.until is None or at < one.until)
    return is_true and (one.by not in others or one.trust == "released")
