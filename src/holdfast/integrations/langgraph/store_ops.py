"""What is checked of the operations and the settings of a LangGraph store."""

from __future__ import annotations

from math import isfinite

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp, validate_op_namespace

from holdfast.errors import InvalidInput, shown
from holdfast.integrations.langgraph.store_filter import check_filter
from holdfast.integrations.langgraph.store_items import check_key
from holdfast.integrations.langgraph.store_texts import check_fields
from holdfast.types import check_count

# Minutes: three hundred years, so that every time can be stored.
_LONGEST_TTL = 160_000_000


def check_op(op: Op) -> None:
    """Raise InvalidNamespaceError or InvalidInput if an operation cannot be executed."""
    validate_op_namespace(op)
    if isinstance(op, GetOp):
        check_key(op.namespace, op.key)
    elif isinstance(op, PutOp):
        check_key(op.namespace, op.key)
        if op.index is not None and op.index is not False:
            check_fields(op.index)
        if op.ttl is not None:
            check_minutes(op.ttl, "ttl")
    elif isinstance(op, SearchOp):
        _check_page(op)
        if op.filter:
            check_filter(op.filter)
    elif isinstance(op, ListNamespacesOp):
        _check_page(op)
        if op.max_depth is not None:
            check_count(op.max_depth, "max_depth")
        for condition in op.match_conditions or ():
            if condition.match_type not in ("prefix", "suffix"):
                what = f"{shown(condition.match_type)} is no way to match namespaces."
                raise InvalidInput(what, "Use 'prefix' or 'suffix'.")
    else:
        raise InvalidInput(f"{shown(op)} is no operation of a store.", "Pass those of langgraph.store.base.")


def check_minutes(value: object, what: str) -> float:
    """Return a number of minutes; raise InvalidInput for one below zero, or over three centuries."""
    if isinstance(value, int | float) and isfinite(value) and 0 <= value <= _LONGEST_TTL:
        return value
    raise InvalidInput(
        f"`{what}` is {shown(value)}.", "Pass minutes, at least 0 and at most three centuries."
    )


def _check_page(op: SearchOp | ListNamespacesOp) -> None:
    check_count(op.limit, "limit")
    check_count(op.offset, "offset")
