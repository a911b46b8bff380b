"""One tool with up to thirteen actions, as many as a provider of the contract can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from holdfast.contract import Provider, Session, capabilities
from holdfast.errors import Denied, InvalidInput
from holdfast.tools import render
from holdfast.tools.memory_internals import in_view
from holdfast.tools.permissions import Permissions, Rule, allowed_names, available, call, write_text
from holdfast.tools.presets.preset import CAP, Preset, nothing, shorten, with_note, within
from holdfast.tools.read_actions import MOST, REFUSALS, Confirm, ask, check_confirm, quoted, unknown_id
from holdfast.tools.results import ChangeItem, MemoryItem, as_json
from holdfast.tools.tool import Tool, ToolResult, result, single_tool

_SHOWN = "The next prompt shows it."
Content = Annotated[str, "the whole new text"]
Of = Annotated[Literal["profile", "soul", "constraint"], "what it is the history of"]


def _changes(description: str) -> Rule:
    return Rule(description, ("profile",), writes=True, idempotent=False)


_RULES: Mapping[str, Rule] = {
    "status": Rule("how much there is of this session"),
    "search": Rule("find a text in this session", ("search",)),
    "describe": Rule("where a summary stands", ("explore",)),
    "expand": Rule("what a summary was made of", ("explore",)),
    "soul_get": Rule("what the agent is to this user", ("profile",)),
    "soul_update": _changes("write that anew"),
    "profile_get": Rule("who the user is", ("profile",)),
    "profile_update": _changes("write that anew"),
    "profile_history": Rule("what changed", ("changes",)),
    "profile_rollback": Rule("go back to an earlier version", ("versions",), writes=True, idempotent=False),
    "constraint_list": Rule("what always holds", ("profile",)),
    "constraint_add": _changes("only after explicit user confirmation"),
    "constraint_remove": _changes("only after explicit user confirmation"),
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
    max_tokens: int = CAP,
) -> Tool:
    """Return one tool `memory` with the actions that the provider can do, at least `status`.

    Args:
        provider: the memory.
        chat: the chat in which the agent acts.
        allow: only these actions.
        read_only_profile: whether the profile can be neither updated nor rolled back.
        read_only_soul: whether the soul can be neither updated nor rolled back.
        confirm: asks the user about a change of a constraint, and returns whether they agreed.
        max_tokens: of a result at most, about.

    Raises:
        InvalidInput: there is no action of a name in `allow`, or `confirm` has to be awaited.

    """
    locked = {"profile_update", "profile_rollback"} if read_only_profile else set()
    locked |= {"soul_update"} if read_only_soul else set()
    allowed = allowed_names(allow, ACTIONS) - locked
    possible = available(Permissions(provider, capabilities(provider)), _ProviderActions, _RULES)
    actions = [action for action in possible if action.name in allowed]
    args = {param.name: replace(param, required=False) for action in actions for param in action.parameters}
    listed = "\n".join(f"{action.name}: {action.description}" for action in actions)
    return single_tool(
        _ProviderActions(provider, chat, max_tokens, check_confirm(confirm), soul_locked=read_only_soul),
        actions,
        f"The memory of this conversation and its user. Actions:\n{listed}",
        args.values(),
    )


class _ProviderActions(Preset):
    """The actions, one method for each."""

    def __init__(
        self, provider: Provider, chat: Session, cap: int, confirm: Confirm, *, soul_locked: bool
    ) -> None:
        super().__init__(provider, chat, cap)
        self._confirm = confirm
        self._soul_locked = soul_locked

    @property
    def _of_user(self) -> Any:
        """The provider, which has to be bound to a user."""
        scope = getattr(self._memory, "scope", None)
        if scope is not None and not scope.user:
            raise InvalidInput("It is not known who the user is.", "Go on without what is known of them.")
        return self._memory

    def status(self) -> dict[str, object]:
        # What describes the chat is not among what it holds.
        stats = asdict(replace(self._chat.stats(), info=None))
        del stats["info"]
        named = {name: render.moment(stats[name]) for name in ("oldest", "newest")}
        return {"memory": self._memory.name, "session": self._chat.id, **stats, **named}

    def search(
        self,
        pattern: Annotated[str, "text to find"],
        scope: Literal["messages", "summaries", "both"] = "both",
        limit: int = 20,
    ) -> ToolResult:
        most, view = within(limit, MOST, 20), in_view(self._memory, self._chat)
        hits = [hit for hit in self._chat.search(pattern, scope, most + len(view.seen)) if not view.has(hit)]
        shown = render.mask_hits(self._memory, hits[:most])
        return self._listing([render.of_hit(hit) for hit in shown], "No matches found.")

    def describe(self, summary_id: str) -> dict[str, object]:
        try:
            description = self._chat.describe(summary_id)
        except REFUSALS as error:
            raise unknown_id(summary_id) from error
        data = {
            "summary": as_json(render.of_summary(description.summary)),
            "depth": description.summary.depth,
            "parents": list(description.parents),
            "children": list(description.children),
        }
        return with_note(data, "")

    def expand(self, summary_id: str, max_tokens: int = 4_000) -> ToolResult:
        try:
            expansion = self._chat.expand(summary_id, within(max_tokens, self._cap, min(4_000, self._cap)))
        except REFUSALS as error:
            raise unknown_id(summary_id) from error
        items = [render.of_message(message, expansion.summary.chat) for message in expansion.messages]
        items += [render.of_summary(child) for child in expansion.children]
        return self._listing(items, "Nothing is behind it.", more=expansion.truncated)

    def soul_get(self) -> ToolResult:
        return self._text("soul", render.text_of(self._of_user.get("soul")), "No agent soul defined.")

    def soul_update(self, content: Content) -> dict[str, object]:
        return self._update("soul", content)

    def profile_get(self) -> ToolResult:
        return self._text("profile", render.text_of(self._of_user.get("profile")), "No profile notes found.")

    def profile_update(self, content: Content) -> dict[str, object]:
        return self._update("profile", content)

    def _update(self, kind: str, content: str) -> dict[str, object]:
        record = write_text(self._of_user, kind, content, self._chat.id)
        return {"version": record.version, "note": render.write_note(record) or _SHOWN}

    def profile_history(self, history_scope: Of = "profile", history_limit: int = 10) -> ToolResult:
        changes = self._memory.changes(kind=history_scope, limit=within(history_limit, MOST, 10))
        items = [render.of_change(change, self._cap // 8) for change in changes]
        return self._listing(items, "No history found.")

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
            done = self._memory.rollback(history_scope, rollback_version, by=by)
        except InvalidInput as error:
            raise InvalidInput(error.what, "Use a version that `profile_history` lists.") from error
        if "snapshots" in capabilities(self._memory) and self._chat.snapshot() is not None:
            self._chat.refresh()
        return {"restored": len(done), "note": _SHOWN}

    def constraint_list(self) -> ToolResult:
        items = [render.of_record(record) for record in self._of_user.records(kind="constraint")]
        return self._listing(items, "No constraints set.")

    def constraint_add(self, constraint_text: str) -> ToolResult:
        remember = self._of_user.remember
        ask(self._confirm, f"Add the constraint {quoted(constraint_text)}?")
        call(remember, constraint_text, "constraint", by="user", chat=self._chat.id)
        return self.constraint_list()

    def constraint_remove(self, constraint_id: str) -> ToolResult:
        known = {record.id: record.text for record in self._of_user.records(kind="constraint")}
        if constraint_id not in known:
            raise InvalidInput("There is no constraint with this id.", "Use an id of `constraint_list`.")
        ask(self._confirm, f"Remove the constraint {quoted(known[constraint_id])}?")
        call(self._memory.retract, constraint_id, by="user", chat=self._chat.id)
        return self.constraint_list()

    def _text(self, name: str, text: str, otherwise: str) -> ToolResult:
        return result(with_note({name: shorten(text, self._cap)}, "")) if text else nothing(otherwise)

    def _listing(
        self, items: Sequence[MemoryItem] | Sequence[ChangeItem], otherwise: str, *, more: bool = False
    ) -> ToolResult:
        if not items:
            return nothing(otherwise)
        parts = [
            replace(item, text=shorten(item.text, self._cap // 2)) if isinstance(item, MemoryItem) else item
            for item in items
        ]
        taken, note = self._fit(parts, lambda item: str(as_json(item)))
        self._note(render.references(item for item in taken if isinstance(item, MemoryItem)))
        return result(with_note({"results": as_json(taken)}, note or ("There is more." if more else "")))
