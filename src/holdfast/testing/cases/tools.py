"""tools: an agent gets tools for what the provider can do, and whatever goes wrong in them is a result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.contract import Capability, capabilities
from holdfast.testing.case import (
    CATS,
    LISBON,
    QUOKKA,
    FullProvider,
    case,
    expect,
    fill,
    prompt_text,
    same,
    text_of,
    texts,
)

if TYPE_CHECKING:
    from holdfast import Tool

NEEDS: dict[str, Capability] = {
    "recall": "recall",
    "remember": "records",
    "update": "records",
    "forget": "records",
    "history": "changes",
    "profile": "profile",
    "constraints": "profile",
    "notes": "records",
    "scratchpad": "scratchpad",
    "search_sessions": "sessions",
}
# Any of them is enough for the tool `expand`.
EXPANDS: frozenset[Capability] = frozenset({"records", "sessions", "explore"})
# Arguments that change something.
WRITES = {"text", "soul", "add", "remove", "value", "restore"}
WRONG_ARGUMENTS: tuple[dict[str, object], ...] = (
    {},
    {"id": "unknown"},
    {"query": 5},
    {"nothing": "of the kind"},
    {"action": "unknown"},
    {"text": ""},
    {"cursor": "x"},
    {"restore": 9},
)


def _tools(memory: FullProvider, chat: str | None = "c", **options: Any) -> dict[str, Tool]:
    """Make the tools of a provider, by their names."""
    # Only these cases need the module.
    from holdfast.port.tools import tools_for

    return {tool.name: tool for tool in tools_for(memory, chat, **options)}


@case("tools")
def tools_are_those_of_the_capabilities(memory: FullProvider) -> None:
    """The tools are those of the provider's capabilities, and `status`."""
    can = capabilities(memory)
    wanted = {name for name, need in NEEDS.items() if need in can} | {"status"}
    wanted |= {"expand"} if can & EXPANDS else set()
    same(set(_tools(memory)), wanted)
    [single] = _tools(memory, style="single").values()
    described = str(single.parameters) + single.description
    actions = {name for name in {*NEEDS, "expand"} if f"{name}(" in described}
    same(actions, wanted - {"status"}, "Actions of the single tool")


@case("tools")
def a_status_is_json(memory: FullProvider) -> None:
    """`status` names the provider and counts the messages; the text of its result is its data as JSON."""
    fill(memory.chat("c"), 3)
    result = _tools(memory)["status"]({})
    expect(result.ok, result.text)
    same((result.data["memory"], result.data["messages"]), (memory.name, 3), "`memory`, `messages`")
    same(json.loads(result.text), json.loads(json.dumps(result.data)), "The text")


@case("tools")
def read_only_tools_change_nothing(memory: FullProvider) -> None:
    """With `read_only`, no tool writes or has an argument that changes something."""
    for tool in _tools(memory, read_only=True).values():
        expect(tool.read_only, f"`{tool.name}` writes.")
        properties: Any = tool.parameters["properties"]
        same(WRITES.intersection(properties), set(), f"Arguments of `{tool.name}`")


@case("tools")
def errors_of_tools_are_results(memory: FullProvider) -> None:
    """A tool with wrong arguments raises nothing: its result is not `ok`, is JSON, and says what to do."""
    fill(memory.chat("c"), 3)
    for tool in [*_tools(memory).values(), *_tools(memory, style="single").values()]:
        for arguments in WRONG_ARGUMENTS:
            result, call = tool(arguments), f"`{tool.name}` with {arguments}"
            json.dumps(result.data)
            same(result.ok, result.error is None, f"`ok` of {call}")
            expect(
                result.ok or (result.data.get("error") and result.data.get("todo")), f"{call} says nothing."
            )
            refused = isinstance(result.error, ValueError | LookupError | PermissionError)
            expect(result.ok or refused, f"{call} failed with {result.error!r}.")


@case("tools", "recall")
def no_match_is_no_error(memory: FullProvider) -> None:
    """A search without a match is `ok` and says so."""
    result = _tools(memory)["recall"]({"query": "quokka"})
    expect(result.ok and "No matches found." in result.text, result.text)


@case("tools", "records", "recall")
def an_agent_recalls_what_it_remembers(memory: FullProvider) -> None:
    """What an agent remembers with a tool it can recall, update by its id, and forget."""
    there = _tools(memory)

    def recalled() -> str:
        return there["recall"]({"query": "quokka"}).text

    written = there["remember"]({"text": QUOKKA})
    expect(written.ok and "in the harbour" in recalled(), "What was remembered is not recalled.")
    id_ = written.data["id"]
    changed = there["update"]({"id": id_, "text": "The quokka sleeps in the garden."})
    expect(changed.ok and "in the garden" in recalled(), "What was updated is not recalled.")
    expect(there["forget"]({"id": id_}).ok and "in the garden" not in recalled(), "It is not forgotten.")


@case("tools", "records", "scopes")
def tools_refuse_ids_of_another_user(memory: FullProvider) -> None:
    """Tools neither show nor change a record of another user."""
    record = memory.remember(QUOKKA, by="user")
    theirs = _tools(memory.scoped(user="eve"))
    for name, arguments in (("expand", {}), ("update", {"text": "It is awake."}), ("forget", {})):
        result = theirs[name]({"id": record.id, **arguments})
        expect(not result.ok and "harbour" not in result.text, f"`{name}`: {result.text}")
    same(texts(memory.records()), [QUOKKA])


@case("tools", "profile")
def an_agent_writes_and_reads_the_profile(memory: FullProvider) -> None:
    """An agent reads the profile that it wrote, as everybody does; a missing one is said to be missing."""
    profile = _tools(memory)["profile"]
    expect("No profile notes found." in profile({}).text, profile({}).text)
    expect(profile({"text": LISBON}).ok, "The profile is not written.")
    same(profile({}).data["profile"], LISBON, "Profile that the tool reads")
    same(text_of(memory.get("profile")), LISBON, "Profile")


@case("tools", "profile")
def constraints_need_the_users_consent(memory: FullProvider) -> None:
    """A tool adds and removes a constraint only if `confirm` agrees, and lists them with their ids."""
    expect(not _tools(memory)["constraints"]({"add": "No nuts."}).ok, "It is added without consent.")
    same(memory.records(kind="constraint"), [], "Constraints without consent")
    there = _tools(memory, confirm=lambda _: True)["constraints"]
    expect(there({"add": "No nuts."}).ok, "It is not added with consent.")
    [added] = memory.records(kind="constraint")
    listed = there({}).text
    expect(added.id in listed and "No nuts." in listed, listed)
    expect(not there({"remove": "unknown"}).ok, "An unknown constraint is removed.")
    expect(there({"remove": added.id}).ok, "It is not removed.")
    expect("No constraints set." in there({}).text, there({}).text)


@case("tools", "profile", "changes", "versions")
def an_agent_can_restore_a_version(memory: FullProvider) -> None:
    """`history` shows earlier texts and restores one as a new version; an unknown version is an error."""
    memory.remember(LISBON, "profile", by="user")
    memory.remember(CATS, "profile", by="user")
    history = _tools(memory)["history"]
    expect(LISBON in history({"kind": "profile"}).text, "The earlier text is missing.")
    expect(not history({"kind": "profile", "restore": 9}).ok, "An unknown version is restored.")
    expect(history({"kind": "profile", "restore": 1}).ok, "A version is not restored.")
    same((text_of(memory.get("profile")), memory.version()), (LISBON, 3))


@case("tools", "profile", "snapshots", "prompt")
def a_chat_shows_what_its_agent_wrote(memory: FullProvider) -> None:
    """What an agent writes with the tools of a chat is in the next prompt of this chat, and of no other."""
    for name in ("c", "other"):
        fill(memory.chat(name), 1)
        memory.chat(name).prompt()
    expect(_tools(memory, None)["profile"]({"text": LISBON}).ok, "It fails without a chat.")
    expect("Lisbon" not in prompt_text(memory.chat("c").prompt()), "A write without a chat is shown.")
    expect(_tools(memory, "c")["profile"]({"text": CATS}).ok, "It fails with a chat.")
    expect("two cats" in prompt_text(memory.chat("c").prompt()), "A write in the chat is not shown.")
    expect("two cats" not in prompt_text(memory.chat("other").prompt()), "Another chat shows the write.")
