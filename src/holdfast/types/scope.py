"""Whose memory it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.types.checks import check_name


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory it is: a tenant, a user of it, and the agent that acts.

    Tenant and user together are the *space*: the unit of isolation and of search statistics. An empty agent
    stands for all agents of the user; an empty user for what the whole tenant shares.

    Raises:
        InvalidInput: a part is not text, longer than 512 bytes in UTF-8 (`%` and `/` count as three), or has
            control characters.

    """

    tenant: str = ""
    user: str = ""
    agent: str = ""
    # Tenant and user as one text, which no other pair has.
    space: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for part in ("tenant", "user", "agent"):
            check_name(_escape(check_name(getattr(self, part), part, empty=True)), part, empty=True)
        object.__setattr__(self, "space", f"{_escape(self.tenant)}/{_escape(self.user)}")

    @property
    def shared(self) -> Scope:
        """The scope of what all users of the tenant share."""
        return Scope(self.tenant, "", self.agent)


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def scope_of(space: str) -> Scope:
    """Return the tenant and the user of a space, as a scope of all their agents."""
    tenant, _, user = space.partition("/")
    return Scope(*(part.replace("%2F", "/").replace("%25", "%") for part in (tenant, user)))
