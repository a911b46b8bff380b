"""The metadata of a hit, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.types import Hit


def hit_metadata(hit: Hit) -> dict[str, object]:
    """Return the metadata of a hit; see `HoldfastRetriever` for the keys."""
    named = {"chat": hit.chat, "role": hit.role, "name": hit.name, "kind": hit.kind, "space": hit.space}
    return {
        "source": write_reference(hit.chat, hit.seq) if hit.source == "message" else hit.id,
        "type": hit.source,
        "score": hit.score,
        "at": hit.at.isoformat(),
        "why": str(hit.why),
        **{key: value for key, value in named.items() if value},
        **({"flags": list(hit.flags)} if hit.flags else {}),
    }
