"""The namespaces of a LangGraph store, from their markers."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from holdfast.integrations.langgraph.store_items import (
    Namespace,
    decode_marker,
    item_key,
    marker_key,
    namespace_of,
)

if TYPE_CHECKING:
    from langgraph.store.base import ListNamespacesOp, MatchCondition

    from holdfast.port.items import Items

_ANY = "*"


def list_namespaces(table: Items, op: ListNamespacesOp) -> list[Namespace]:
    """Return the namespaces that match all conditions, in order, cut to a depth."""
    conditions = op.match_conditions or ()
    paths = (condition.path for condition in conditions if _is_prefix(condition))
    known = [tuple(takewhile(lambda label: label != _ANY, path)) for path in paths]
    scanned = table.scan(prefix=marker_key(max(known, key=len, default=())))
    markers = [(namespace_of(marker.key[1:]), marker.data) for marker in scanned]
    namespaces = [
        namespace
        for namespace, data in markers
        if all(_matches(condition, namespace) for condition in conditions)
        # All items of it may have expired, and not be swept yet.
        and (not decode_marker(data).expiring or table.scan(prefix=item_key(namespace, ""), limit=1))
    ]
    if op.max_depth is not None:
        namespaces = list(dict.fromkeys(namespace[: op.max_depth] for namespace in namespaces))
    return namespaces[op.offset : op.offset + op.limit]


def _is_prefix(condition: MatchCondition) -> bool:
    return condition.match_type == "prefix"


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Return whether the labels at one end of a namespace are those of a path; "*" stands for any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if _is_prefix(condition) else namespace[len(namespace) - len(path) :]
    return all(wanted in (label, _ANY) for label, wanted in zip(labels, path, strict=True))
