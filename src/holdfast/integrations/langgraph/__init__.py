"""LangGraph: the checkpoints and the store of graphs, in a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.types.late import importer

if TYPE_CHECKING:
    from holdfast.integrations.langgraph.checkpointer import HoldfastSaver
    from holdfast.integrations.langgraph.store import HoldfastStore

__all__ = ["HoldfastSaver", "HoldfastStore"]

__getattr__ = importer(
    "holdfast.integrations.langgraph", {"checkpointer": "HoldfastSaver", "store": "HoldfastStore"}
)
