"""One tool with up to thirteen actions, as many as a provider of the contract can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal, NamedTuple

from holdfast.contract import Capability, Provider, Session, capabilities
from holdfast.errors import Denied, InvalidInput
from holdfast.tools import render
from holdfast.tools.action_base import MOST, REFUSALS, Confirm, ask, call, check_confirm, nothing, quoted
from holdfast.tools.json_schema import Parameter, checked, parameters, schema
from holdfast.tools.permissions import allowed_names
from holdfast.tools.presets.fitting import CAP, LEFT_OUT, fitting, shortened
from holdfast.tools.results import ORIGIN, Changed, Item, as_json
from holdfast.tools.tool import Tool, ToolResult, result

_SHOWN = "The next prompt shows it."
Content = Annotated[str, "the whole new text"]
Of = Annotated[Literal["profile", "soul", "constraint"], "what it is the history of"]


class _Rule(NamedTuple):
    """Say what an action needs, and what is said of it."""

    needs: tuple[Capability, ...]
    description: str
    writes: bool = False


_RULES: Mapping[str, _Rule] = {
    "status": _Rule((), "how much there is of this session"),
    "search": _Rule(("search",), "find a text in this session"),
    "describe": _Rule(("explore",), "where a summary stands"),
    "expand": _Rule(("explore",), "what a summary was made of"),
    "soul_get": _Rule(("profile",), "what the agent is to this user"),
    "soul_update": _Rule(("profile",), "write that anew", writes=True),
    "profile_get": _Rule(("profile",), "who the user is"),
    "profile_update": _Rule(("profile",), "write that anew", writes=True),
    "profile_history": _Rule(("changes",), "what changed"),
    "profile_rollback": _Rule(("versions",), "go back to an earlier version", writes=True),
    "constraint_list": _Rule(("constraints",), "what always holds"),
    "constraint_add": _Rule(("constraints",), "only after explicit user confirmation", writes=True),
    "constraint_remove": _Rule(("constraints",), "only after explicit user confirmation", writes=True),
}
ACTIONS: tuple[str, ...] = tuple(_RULES)
"""The names of all actions, in their order."""


def provider_tool(
    provider: Provider,
    chat: Session,
    *,
    allow: Iterable[str] | None = None,
    read_only_profile: bool = False,
    read_only_soul: bool = False,
    confirm: Confirm | None = None,
    token_cap: int = CAP,
) -> Tool:
    """Make one tool `memory` whose actions are those that the provider can do; at the least `status`.

    Args:
        provider: the memory.
        chat: the session in which the agent acts.
        allow: only these actions.
        read_only_profile: the profile is neither updated nor rolled back.
        read_only_soul: the soul is not updated, and only the profile and constraints are rolled back.
        confirm: asks the user about a change of a constraint, and says whether they agreed; without it there is none.
        token_cap: tokens of a result at most, about.

    Raises:
        InvalidInput: there is no action of a name in `allow`, or `confirm` has to be awaited.

    """
    locked = {"profile_update", "profile_rollback"} if read_only_profile else set()
    locked |= {"soul_update"} if read_only_soul else set()
    can, allowed = capabilities(provider), allowed_names(allow, ACTIONS) - locked
    doing = _Doing(provider, chat, check_confirm(confirm), token_cap, soul_locked=read_only_soul)
    there = [name for name, rule in _RULES.items() if name in allowed and can.issuperset(rule.needs)]
    known = {name: parameters(getattr(_Doing, name)) for name in there}
    choice = Parameter("action", "string", "", required=True, choices=tuple(there))

    def run(arguments: Mapping[str, object]) -> object:
        given = {name: value for name, value in arguments.items() if value is not None}
        name = str(checked({"action": given.pop("action", "")}, [choice], "`memory`")["action"])
        if "profile" in _RULES[name].needs or "constraints" in _RULES[name].needs:
            _check_user(provider)
        method: Callable[..., object] = getattr(doing, name)
        return method(**checked(given, known[name], f"`{name}`"))

    every = {one.name: one for name in there for one in known[name]}
    optional = [Parameter(one.name, one.type, one.description, choices=one.choices) for one in every.values()]
    listed = "\n".join(f"{name}: {_RULES[name].description}" for name in there)
    writes = any(_RULES[name].writes for name in there)
    return Tool(
        "memory",
        f"The memory of this conversation and its user. Actions:\n{listed}",
        schema([choice, *optional]),
        read_only=not writes,
        destructive=writes,
        idempotent=not writes,
        run=run,
    )


def _check_user(provider: Provider) -> None:
    """Raise where a provider of many users does not know which one this is."""
    scope = getattr(provider, "scope", None)
    if scope is not None and not scope.user:
        raise InvalidInput("It is not known who the user is.", "Go on without what is known of them.")


class _Doing:
    """Do the actions, one method for each."""

    def __init__(
        self,
        provider: Provider,
        chat: Session,
        confirm: Confirm,
        cap: int,
        *,
        soul_locked: bool,
    ) -> None:
        self._provider: Any = provider  # what it can do beyond the core is found out
        self._chat: Any = chat
        self._confirm = confirm
        self._cap = cap
        self._soul_locked = soul_locked

    def status(self) -> dict[str, object]:
        stats = asdict(self._chat.stats())
        named = {name: render.moment(stats[name]) for name in ("oldest", "newest")}
        return {"memory": self._provider.name, "session": self._chat.id, **stats, **named}

    def search(
        self,
        pattern: Annotated[str, "text to find"],
        scope: Literal["messages", "summaries", "both"] = "both",
        limit: int = 20,
    ) -> ToolResult:
        hits = self._chat.search(pattern, scope, min(limit, MOST) if limit > 0 else 20)
        found = render.recalled(self._provider, hits)
        return self._listing([render.of_hit(hit) for hit in found], "No matches found.")

    def describe(self, summary_id: str) -> dict[str, object]:
        try:
            found = self._chat.describe(summary_id)
        except REFUSALS as error:
            raise nothing(summary_id) from error
        return {
            "origin": ORIGIN,
            "summary": as_json(render.of_summary(found.summary)),
            "depth": found.summary.depth,
            "parents": list(found.parents),
            "children": list(found.children),
        }

    def expand(self, summary_id: str, token_cap: int = 4_000) -> ToolResult:
        try:
            found = self._chat.expand(summary_id, min(token_cap if token_cap > 0 else 4_000, self._cap))
        except REFUSALS as error:
            raise nothing(summary_id) from error
        items = [render.of_message(one, found.summary.chat) for one in found.messages]
        items += [render.of_summary(one) for one in found.children]
        return self._listing(items, "Nothing is behind it.", more=found.truncated)

    def soul_get(self) -> ToolResult:
        return self._text("soul", self._provider.soul(), "No agent soul defined.")

    def soul_update(self, content: Content) -> dict[str, object]:
        record = call(self._provider.set_soul, content, by="agent", chat=self._chat.id)
        return {"version": record.version, "note": render.became(record) or _SHOWN}

    def profile_get(self) -> ToolResult:
        return self._text("profile", self._provider.profile(), "No profile notes found.")

    def profile_update(self, content: Content) -> dict[str, object]:
        record = call(self._provider.set_profile, content, by="agent", chat=self._chat.id)
        return {"version": record.version, "note": render.became(record) or _SHOWN}

    def profile_history(self, history_scope: Of = "profile", history_limit: int = 10) -> ToolResult:
        limit = min(history_limit, MOST) if history_limit > 0 else 10
        changes = self._provider.changes(kind=history_scope, limit=limit)
        return self._listing([render.of_change(one, self._cap // 8) for one in changes], "No history found.")

    def profile_rollback(
        self, rollback_version: Annotated[int, "of the history"], history_scope: Of = "profile"
    ) -> dict[str, object]:
        if history_scope == "soul" and self._soul_locked:
            raise Denied("The soul is read-only here.", "Leave it as it is.")
        by = "agent"
        if history_scope == "constraint":
            ask(self._confirm, f"Take the constraints back to version {rollback_version}?")
            by = "user"
        try:
            done = self._provider.rollback(history_scope, rollback_version, by=by)
        except InvalidInput as error:
            raise InvalidInput(error.what, "Use a version that `profile_history` lists.") from error
        if "snapshots" in capabilities(self._provider) and self._chat.snapshot() is not None:
            self._chat.advance()
        return {"restored": len(done), "note": _SHOWN}

    def constraint_list(self) -> ToolResult:
        return self._listing(
            [render.of_record(one) for one in self._provider.constraints()], "No constraints set."
        )

    def constraint_add(self, constraint_text: str) -> ToolResult:
        ask(self._confirm, f"Add the constraint {quoted(constraint_text)}?")
        call(self._provider.add_constraint, constraint_text, by="user", chat=self._chat.id)
        return self.constraint_list()

    def constraint_remove(self, constraint_id: str) -> ToolResult:
        known = {one.id: one.text for one in self._provider.constraints()}
        if constraint_id not in known:
            raise InvalidInput("There is no constraint with this id.", "Use an id of `constraint_list`.")
        ask(self._confirm, f"Remove the constraint {quoted(known[constraint_id])}?")
        call(self._provider.remove_constraint, constraint_id, by="user", chat=self._chat.id)
        return self.constraint_list()

    def _text(self, name: str, text: str, none: str) -> ToolResult:
        if not text:
            return result({"origin": ORIGIN, "note": none}, none)
        return result({"origin": ORIGIN, name: shortened(text, self._cap)})

    def _listing(self, items: Sequence[Item | Changed], none: str, *, more: bool = False) -> ToolResult:
        if not items:
            return result({"origin": ORIGIN, "note": none}, none)
        taken, left = fitting([self._cut(item) for item in items], lambda item: str(as_json(item)), self._cap)
        render.note(self._provider, self._chat, render.names(one for one in taken if isinstance(one, Item)))
        note = LEFT_OUT.format(left) if left else "There is more." if more else ""
        return result({"origin": ORIGIN, "results": as_json(taken)} | ({"note": note} if note else {}))

    def _cut(self, item: Item | Changed) -> Item | Changed:
        return replace(item, text=shortened(item.text, self._cap // 2)) if isinstance(item, Item) else item
