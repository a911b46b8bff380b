"""Whose memory it is: the scope of a handle, the space that it writes to, and those that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from holdfast.errors import Denied, InvalidInput, shown
from holdfast.types.checks import check_name, check_several

# References of one handle beside its own: each costs a recall its part.
MAX_READS = 32
_FORMS = "'project:NAME', 'user', 'user:NAME', 'user:NAME/project:NAME', 'team:NAME' or 'tenant'"


@dataclass(frozen=True, slots=True, repr=False)
class Scope:
    """Whose memory it is: a tenant, a user of it, the agent that acts, and a project or a team.

    What it writes to is one *space*, the unit of isolation and of search statistics: the project of the user,
    or the team, or else the user. A project belongs to its user: those of two users are two spaces, whatever
    they are called. An empty agent stands for all agents of the user; an empty user for what the whole tenant
    shares. `reads` are references to further spaces that are read: "project:NAME" and "user" for this user's
    own, "team:NAME", "tenant" for what all share, "user:NAME" and "user:NAME/project:NAME" for those of
    others; a slash in a name is written `%2F`.

    Raises:
        InvalidInput: a part is not text, longer than 512 bytes in UTF-8 (`%` and `/` count as three), or has
            control characters; a project and a team are named; or what is read is no reference.

    """

    tenant: str = ""
    user: str = ""
    agent: str = ""
    project: str = field(default="", kw_only=True)
    team: str = field(default="", kw_only=True)
    reads: tuple[str, ...] = field(default=(), kw_only=True)
    # Whose rights count in the space of another user.
    actor: str = field(default="", kw_only=True)
    # The space that is written, as a unique text.
    space: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for part in ("tenant", "user", "agent", "project", "team"):
            check_name(_escape(check_name(getattr(self, part), part, empty=True)), part, empty=True)
        if self.project and self.team:
            raise InvalidInput("A handle writes to one space.", "Name a project or a team, not both.")
        parts = ("", "", self.team) if self.team else (self.user, *filter(None, (self.project,)))
        object.__setattr__(self, "space", "/".join(map(_escape, (self.tenant, *parts))))
        if self.reads != ():
            references: tuple[Any, ...] = tuple(check_several(self.reads, "reads", _FORMS))
            if len(references) > MAX_READS:
                raise InvalidInput(f"`reads` names {len(references):,} spaces.", f"Name at most {MAX_READS}.")
            for reference in references:
                self.named(reference)
            object.__setattr__(self, "reads", tuple(dict.fromkeys(references)))

    @property
    def shared(self) -> Scope:
        """The scope that all users of the tenant share."""
        return _derive(self.tenant, "", self.agent)

    @property
    def owner(self) -> Scope:
        """The scope of the user, without a project or a team."""
        return _derive(self.tenant, self.user, self.agent)

    @property
    def acting(self) -> str:
        """The user whose rights count; "" for a program that acts for all."""
        return self.actor or self.user

    @property
    def is_layered(self) -> bool:
        """Whether more is read than the user's space and that of the tenant."""
        return bool(self.project or self.team or self.reads)

    @property
    def spaces(self) -> tuple[str, ...]:
        """The spaces that are read, nearest first: the written one, the user's, `reads`, the tenant's."""
        if self.actor:
            return (self.space,)
        others = (self.named(reference).space for reference in self.reads)
        return tuple(dict.fromkeys((self.space, self.owner.space, *others, self.shared.space)))

    def is_own(self, space: str) -> bool:
        """Return whether a space needs no grant: the user's, one of its projects, or the shared one.

        A handle without a user acts for all of its tenant.
        """
        shared = f"{_escape(self.tenant)}/"
        mine = f"{shared}{_escape(self.acting)}"
        return space in (mine, shared) or space.startswith(f"{mine}/" if self.acting else shared)

    def named(self, reference: str) -> Scope:
        """Return the scope that a reference of `reads` means, seen from this one.

        Raises:
            InvalidInput: it is none.

        """
        if not isinstance(reference, str):
            raise _no_reference(reference)
        first, *rest = reference.split("/")
        kind, colon, name = first.partition(":")
        if reference == "tenant":
            return self.shared
        if reference == "user":
            return self.owner
        name = _unescape(name)
        if kind == "team" and name and not rest:
            return _derive(self.tenant, "", self.agent, team=name)
        if kind == "project" and name and not rest:
            return _derive(self.tenant, self.user, self.agent, name)
        if kind == "user" and name and colon and len(rest) <= 1:
            kind, _, project = (rest or ["project:"])[0].partition(":")
            if kind == "project" and bool(project) == bool(rest):
                return _derive(self.tenant, name, self.agent, _unescape(project))
        raise _no_reference(reference)

    def seen(self, space: str) -> Scope:
        """Return the scope of a space that this one reads, with the same rights."""
        if space == self.shared.space:
            return self.shared
        other = scope_of(space)
        if other.team:
            return replace(other, user=self.acting, agent=self.agent)
        actor = "" if self.acting in ("", other.user) else self.acting
        return replace(other, agent=self.agent, actor=actor)

    def reference(self, space: str) -> str:
        """Return the reference to a space of this tenant, seen from this scope."""
        other = scope_of(space)
        if other.team:
            return f"team:{_escape(other.team)}"
        project = f"project:{_escape(other.project)}" if other.project else ""
        if other.user == self.acting:
            return project or ("user" if self.acting else "tenant")
        user = f"user:{_escape(other.user)}" if other.user else "tenant"
        return f"{user}/{project}" if project else user

    def __repr__(self) -> str:
        parts = ((part.name, getattr(self, part.name)) for part in fields(self) if part.init)
        usual = ("tenant", "user", "agent")
        return f"Scope({', '.join(f'{name}={value!r}' for name, value in parts if value or name in usual)})"


# A prompt derives five: the parts are checked when the first is made.
@lru_cache(maxsize=4_096)
def _derive(tenant: str, user: str, agent: str, project: str = "", team: str = "") -> Scope:
    """Return a scope of the parts of another one."""
    return Scope(tenant, user, agent, project=project, team=team)


def _no_reference(value: object) -> InvalidInput:
    return InvalidInput(f"{shown(value)} names no space.", f"Use {_FORMS}; write a slash in a name as %2F.")


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def _unescape(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")


def scope_of(space: str) -> Scope:
    """Return the tenant, the user and the project or team of a space, as a scope of all their agents."""
    tenant, user, project, team = map(_unescape, (*space.split("/", 3), "", "", "")[:4])
    return _derive(tenant, user, "", project, team)


def is_space(text: str) -> bool:
    """Return whether a text is written as `Scope.space` writes a space."""
    try:
        return scope_of(text).space == text
    except InvalidInput:
        return False


def scoped(own: Scope, parts: Mapping[str, object]) -> Scope:
    """Return a scope with other parts; None keeps one, see `Memory.scoped`."""
    given: dict[str, Any] = {name: value for name, value in parts.items() if value is not None}
    moved = any(given.get(part, getattr(own, part)) != getattr(own, part) for part in ("tenant", "user"))
    kept: dict[str, Any] = {"project": "", "team": "", "reads": ()} if moved else {}
    if "project" in given or "team" in given:
        kept |= {"project": "", "team": ""}
    return replace(own, **{**kept, **given})


def check_actor(own: Scope, other: Scope | None) -> None:
    """Raise Denied where a handle of one user would act for another; None stands for all users."""
    if not own.user or (other is not None and other.owner.space == own.owner.space):
        return
    whom = "all users" if other is None else f"tenant {other.tenant!r}, user {other.user!r}"
    raise Denied(
        f"This handle is bound to user {own.user!r} and does not act for {whom}.",
        "Use a handle that names no user, or open one for such work: Memory(…, admin=True).",
    )
