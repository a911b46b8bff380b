"""One tool for facts about the user and the environment, and for what happened in past sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from holdfast.contract import Provider, Session
from holdfast.errors import InvalidInput
from holdfast.kinds import table
from holdfast.llm.model import LLM
from holdfast.records.draft import check_room
from holdfast.tools import render
from holdfast.tools.memory_internals import internals_of
from holdfast.tools.presets.preset import CAP, Preset, shorten, with_note
from holdfast.tools.tool import Tool, ToolResult, failure, result, tool_of
from holdfast.types import Record

Verb = Literal["add", "replace", "remove", "consolidate", "read", "search", "view"]
Target = Literal["user", "env", "episodes"]
_FOUND = 5  # episodes of a search
_DESCRIPTION = """Durable facts in two lists (user, env) and what happened in past sessions (episodes).
add: content; replace: old_text, content; remove: old_text (each of them in one list; \
old_text is a part of one entry only); consolidate: tidy a list; read: a list; \
search: episodes, by query; view: one episode, its id in query."""


def fact_tool(
    memory: Provider, chat: Session | None = None, *, llm: LLM | None = None, max_tokens: int = CAP
) -> Tool:
    """Return one tool `memory` with add, replace, remove, consolidate, read, search and view.

    Its results are {success, message, entries} or {success, error}; a change returns the whole list.

    Args:
        memory: the `Memory` that stores the facts.
        chat: the chat in which the agent acts.
        llm: the model that consolidates; without one, `consolidate` is an error.
        max_tokens: of a result at most, about.

    """
    facts = _Facts(memory, chat, max_tokens, llm)
    return tool_of(facts.act, "memory", _DESCRIPTION, destructive=True, fail=_failure)


def _failure(error: Exception) -> ToolResult:
    failed = failure(error)
    data = {"success": False, "error": f"{failed.data['error']} {failed.data['todo']}"}
    return replace(failed, data=data, text=result(data).text)


_NOTES = {
    "duplicate": "This entry was there already.",
    "update": "It took the place of an entry that said otherwise.",
    "quarantine": "The entry is not in the list yet.",
}


class _Facts(Preset):
    """The actions of the tool."""

    def __init__(self, memory: Provider, chat: Session | None, cap: int, llm: LLM | None) -> None:
        super().__init__(memory, chat, cap)
        self._llm = llm

    def act(
        self,
        action: Verb,
        target: Target = "user",
        content: Annotated[str | None, "the text of an entry"] = None,
        old_text: Annotated[str | None, "part of the entry that is meant"] = None,
        query: Annotated[str | None, "for search and view"] = None,
    ) -> ToolResult:
        actions: Mapping[str, Callable[[], ToolResult]] = {
            "add": lambda: self._add(target, _require(content, "content")),
            "replace": lambda: self._replace(
                target, _require(old_text, "old_text"), _require(content, "content")
            ),
            "remove": lambda: self._remove(target, _require(old_text, "old_text")),
            "consolidate": lambda: self._consolidate(target),
            "read": lambda: self._read(target),
            "search": lambda: self._search(_require(query, "query")),
            "view": lambda: self._view(_require(query, "query")),
        }
        return actions[action]()

    def _add(self, target: Target, content: str) -> ToolResult:
        self._check_room(target, content)
        record = self._memory.remember(content, "fact", target=_list_of(target), chat=self._chat_id)
        return self._report(target, record, _NOTES.get(record.action, "Entry added."))

    def _replace(self, target: Target, old_text: str, content: str) -> ToolResult:
        before = self._find(target, old_text)
        self._check_room(target, content, before.text)
        record = self._memory.replace(before.id, content, kind="fact", chat=self._chat_id)
        is_held = record.trust == "quarantined"
        return self._report(target, record, "The entry is as it was." if is_held else "Entry replaced.")

    def _report(self, target: Target, record: Record, message: str) -> ToolResult:
        return self._entries(target, render.join_notes(message, render.write_note(record)))

    def _check_room(self, target: Target, content: str, before: str = "") -> None:
        """Raise InvalidInput if an entry would make its list longer than prompts show it."""
        internals, name = internals_of(self._memory), _list_of(target)
        rules = (internals.kinds if internals else table())["fact"]
        texts = self._texts(target)
        if name in rules.prompt_budget and content.strip() not in texts and len(content) > len(before):
            used = sum(map(len, texts))
            check_room(rules, name, rules.prompt_budget[name], used, len(content), len(before))

    def _remove(self, target: Target, old_text: str) -> ToolResult:
        self._memory.retract(self._find(target, old_text).id, kind="fact", chat=self._chat_id)
        return self._entries(target, "Entry removed.")

    def _find(self, target: Target, part: str) -> Record:
        """Return the entry that is or contains a text, ignoring case."""
        matches = self._facts(target, text=part)
        whole = [fact for fact in matches if fact.text == part]
        if len(whole) == 1:
            return whole[0]
        if not matches:
            raise InvalidInput("No entry contains this old_text.", "Use `read` for the entries.")
        if len(matches) > 1:
            what = f"{len(matches)} entries contain this old_text."
            raise InvalidInput(what, "Use a more specific old_text.")
        return matches[0]

    def _consolidate(self, target: Target) -> ToolResult:
        if self._llm is None:
            what = "There is no model that could consolidate."
            raise InvalidInput(what, "Replace and remove entries instead.")
        before = self._texts(target)
        if len(before) < 2:
            return self._entries(target, "There is nothing to consolidate.")
        done = self._memory.learning.consolidate(llm=self._llm, target=_list_of(target))
        after = self._texts(target)
        message = "No entry was changed."
        if after != before:
            message = f"{len(before)} entries became {len(after)}."
        if done.postponed or done.failed:
            what = f"The model that consolidates failed: {message}"
            raise InvalidInput(what, "Go on without it; it is tried again later.")
        return self._entries(target, message if done.done else f"Somebody else is consolidating. {message}")

    def _facts(self, target: Target, text: str | None = None) -> list[Record]:
        facts: list[Record] = self._memory.records(kind="fact", target=_list_of(target), text=text)
        return facts

    def _texts(self, target: Target) -> list[str]:
        return [fact.text for fact in self._facts(target)]

    def _read(self, target: Target) -> ToolResult:
        if target == "episodes":
            return self._episodes(self._memory.records(kind="episode")[::-1])
        return self._entries(target, "")

    def _search(self, query: str) -> ToolResult:
        hits = self._memory.recall(query, kinds=("episode",), limit=_FOUND)
        records = (self._memory.get(hit.id) for hit in hits)
        return self._episodes([record for record in records if record is not None])

    def _view(self, episode: str) -> ToolResult:
        record = self._memory.get(episode)
        if record is None or record.kind != "episode" or record.trust == "quarantined":
            raise InvalidInput("There is no episode with this id.", "Use an id that `search` gives.")
        return self._episodes([record])

    def _episodes(self, matches: list[Record]) -> ToolResult:
        parts = [replace(record, text=shorten(record.text, self._cap // 2)) for record in matches]
        taken, note = self._fit(parts, lambda record: f"{record.chat}{record.text}")
        entries = [
            {"id": record.id, "session": record.chat, "text": record.text, "at": render.moment(record.at)}
            for record in taken
        ]
        return self._listing("" if matches else "No matches found.", note, taken, entries)

    def _entries(self, target: Target, message: str) -> ToolResult:
        facts = self._facts(target)
        parts = [replace(fact, text=shorten(fact.text, self._cap)) for fact in facts]
        taken, note = self._fit(parts, lambda fact: fact.text)
        message = message or ("" if facts else "There are no entries.")
        return self._listing(message, note, taken, [fact.text for fact in taken])

    def _listing(
        self, message: str, note: str, records: Sequence[Record], entries: Sequence[object]
    ) -> ToolResult:
        self._note(record.id for record in records)
        data = {"success": True, "message": render.join_notes(message, note), "entries": entries}
        return result(with_note(data, ""))


def _list_of(target: Target) -> str:
    if target == "episodes":
        raise InvalidInput("Episodes are written by the session itself.", "Use the target 'user' or 'env'.")
    return target


def _require(value: str | None, name: str) -> str:
    if value is None or not value.strip():
        raise InvalidInput(f"`{name}` is missing.", f"Pass `{name}` with some text.")
    return value
