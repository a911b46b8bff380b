"""tools: what an agent is handed is what the provider can do, and works with it; whatever goes wrong is a result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.contract import Capability, capabilities
from holdfast.testing.case import Whole, case, expect, said, same, shown, tell, text_of, texts

if TYPE_CHECKING:
    from holdfast.tools.tool import Tool

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
OPENS: frozenset[Capability] = frozenset(
    {"records", "sessions", "explore"}
)  # any of them is enough for `expand`
WRITES = {"text", "soul", "add", "remove", "value", "restore"}  # arguments by which something is changed
NONSENSE: tuple[dict[str, object], ...] = (
    {},
    {"id": "unknown"},
    {"query": 5},
    {"nothing": "of the kind"},
    {"action": "unknown"},
    {"text": ""},
    {"cursor": "x"},
    {"restore": 9},
)


def tools(memory: Whole, chat: str | None = "c", **options: Any) -> dict[str, Tool]:
    """Make the tools of a provider, by their names."""
    # Only these cases need it.
    from holdfast.tools.tool import tools_for

    return {tool.name: tool for tool in tools_for(memory, chat, **options)}


def agreed(_: str) -> bool:
    """Be a user who confirms everything."""
    return True


def _parameters(tool: Tool) -> set[str]:
    found = tool.parameters["properties"]
    return set(found) if isinstance(found, dict) else set()


@case("tools")
def tools_are_what_the_provider_can_do(memory: Whole) -> None:
    """Expect a tool for each thing it can do, and none for what it cannot; of the core alone, only its status."""
    can = capabilities(memory)
    wanted = {name for name, need in NEEDS.items() if need in can} | {"status"}
    if can & OPENS:
        wanted.add("expand")
    same(set(tools(memory)), wanted, "The tools of a provider are those of its capabilities.")
    [single] = tools(memory, style="single").values()
    described = str(single.parameters) + single.description
    for name in {*NEEDS, "expand"}:
        expect(
            (name in wanted) or f"{name}(" not in described,
            "One tool for all names no action that is not there.",
        )
        expect(
            (name not in wanted) or f"{name}(" in described,
            "One tool for all names each action that is there.",
        )


@case("tools")
def a_status_is_json(memory: Whole) -> None:
    """Expect it to name the provider, and to count what was said."""
    tell(memory.chat("c"), 3)
    result = tools(memory)["status"]({})
    expect(result.ok, "`status` works with every provider.")
    same(
        (result.data["memory"], result.data["messages"]), (memory.name, 3), "`status` tells of the provider."
    )
    same(
        json.loads(result.text),
        json.loads(json.dumps(result.data)),
        "The text of a result is its data, as JSON.",
    )


@case("tools")
def tools_that_only_read_change_nothing(memory: Whole) -> None:
    """Expect none that writes, and no argument by which something is written or rolled back."""
    for tool in tools(memory, read_only=True).values():
        expect(tool.read_only, "With `read_only`, there is no tool that writes.")
        same(_parameters(tool) & WRITES, set(), "With `read_only`, no tool takes anything to write.")


@case("tools")
def what_goes_wrong_is_a_result(memory: Whole) -> None:
    """Expect a result that says what is possible, whatever a model passes, and no exception."""
    tell(memory.chat("c"), 3)
    for tool in [*tools(memory).values(), *tools(memory, style="single").values()]:
        for arguments in NONSENSE:
            result = tool(arguments)
            json.dumps(result.data)
            same(result.ok, result.error is None, "A result is `ok` where there was no error.")
            if not result.ok:
                expect(result.data.get("error") and result.data.get("todo"), "A failed call says what to do.")
            expect(
                not result.error or isinstance(result.error, ValueError | LookupError | PermissionError),
                "What a model passes wrongly is refused, and raises nothing else.",
            )


@case("tools", "recall")
def nothing_found_is_said(memory: Whole) -> None:
    """Expect a sentence, so that a model does not take nothing for a failure."""
    result = tools(memory)["recall"]({"query": "quokka"})
    expect(
        result.ok and "No matches found." in result.text,
        "A search without a match says so, and has not failed.",
    )


@case("tools", "records", "recall")
def what_an_agent_remembers_it_recalls(memory: Whole) -> None:
    """Expect the same through tools as without: remembered, found, changed, and forgotten."""
    there = tools(memory)
    written = there["remember"]({"text": "The quokka sleeps in the harbour."})
    expect(written.ok, "An agent can remember something.")
    expect(
        "in the harbour" in there["recall"]({"query": "quokka"}).text, "What an agent remembers it recalls."
    )
    changed = there["update"]({"id": written.data["id"], "text": "The quokka sleeps in the garden."})
    expect(
        changed.ok and "in the garden" in there["recall"]({"query": "quokka"}).text,
        "An agent can change a record.",
    )
    expect(there["forget"]({"id": written.data["id"]}).ok, "An agent can forget a record by its id.")
    expect(
        "in the garden" not in there["recall"]({"query": "quokka"}).text, "What is forgotten is not recalled."
    )


@case("tools", "records", "scopes")
def an_id_of_another_user_opens_nothing(memory: Whole) -> None:
    """Expect a failure that shows nothing of it."""
    record = memory.remember("The quokka sleeps in the harbour.", by="user")
    theirs = tools(memory.scoped(user="eve"))
    for name, arguments in (("expand", {}), ("update", {"text": "It is awake."}), ("forget", {})):
        result = theirs[name]({"id": record.id, **arguments})
        expect(not result.ok and "harbour" not in result.text, f"`{name}` opens nothing of another user.")
    same(
        texts(memory.records()),
        ["The quokka sleeps in the harbour."],
        "No tool changes what is another user's.",
    )


@case("tools", "profile")
def a_profile_is_written_and_read(memory: Whole) -> None:
    """Expect what was written to be read, and a sentence where nothing was."""
    there = tools(memory)
    expect("No profile notes found." in there["profile"]({}).text, "An empty profile is said to be empty.")
    expect(there["profile"]({"text": "Lives in Lisbon."}).ok, "An agent can write the profile.")
    same(
        there["profile"]({}).data["profile"], "Lives in Lisbon.", "An agent reads the profile that it wrote."
    )
    same(text_of(memory.get("profile")), "Lives in Lisbon.", "What an agent writes everybody reads.")


@case("tools", "profile")
def constraints_are_for_the_user_to_confirm(memory: Whole) -> None:
    """Expect that they are added, listed and removed only where the user agrees."""
    expect(
        not tools(memory)["constraints"]({"add": "No nuts."}).ok,
        "Nobody was asked, so no constraint is added.",
    )
    same(memory.records(kind="constraint"), [], "Without the user's word, no constraint is added.")
    there = tools(memory, confirm=agreed)["constraints"]
    expect(there({"add": "No nuts."}).ok, "A constraint that the user confirms is added.")
    [added] = memory.records(kind="constraint")
    expect(
        added.id in there({}).text and "No nuts." in there({}).text, "Constraints are listed with their ids."
    )
    expect(not there({"remove": "unknown"}).ok, "An unknown constraint cannot be removed.")
    expect(there({"remove": added.id}).ok, "A constraint can be removed by its id.")
    expect("No constraints set." in there({}).text, "That there are no constraints is said.")


@case("tools", "profile", "changes", "versions")
def an_agent_can_go_back(memory: Whole) -> None:
    """Expect the history to show what was before, and to bring it back; a version that is not there is a failure."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    memory.remember("Has two cats.", "profile", by="user")
    history = tools(memory)["history"]
    expect("Lives in Lisbon." in history({"kind": "profile"}).text, "The history shows what was before.")
    expect(
        not history({"kind": "profile", "restore": 9}).ok, "A version that there is not cannot be restored."
    )
    expect(history({"kind": "profile", "restore": 1}).ok, "A version of the profile can be restored.")
    same(
        (text_of(memory.get("profile")), memory.version()),
        ("Lives in Lisbon.", 3),
        "What is restored is a new version.",
    )


@case("tools", "profile", "snapshots", "prompt")
def a_chat_shows_what_its_agent_wrote(memory: Whole) -> None:
    """Expect it in the next prompt of the chat that it acts in, and not in those of others; without one, in none."""
    for name in ("c", "other"):
        memory.chat(name).append([said(1)])
        memory.chat(name).prompt()
    expect(
        tools(memory, None)["profile"]({"text": "Lives in Lisbon."}).ok,
        "A tool works without a chat as well.",
    )
    expect(
        "Lisbon" not in shown(memory.chat("c").prompt()),
        "What is written in no chat waits for the next chat.",
    )
    expect(tools(memory, "c")["profile"]({"text": "Has two cats."}).ok, "An agent can write the profile.")
    expect("two cats" in shown(memory.chat("c").prompt()), "A chat shows what its agent wrote.")
    expect(
        "two cats" not in shown(memory.chat("other").prompt()), "Other chats do not show what an agent wrote."
    )
