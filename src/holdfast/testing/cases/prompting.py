"""prompt, snapshots: what is sent to a model, and of when what it shows is."""

from __future__ import annotations

from holdfast.testing.case import (
    Whole,
    WholeChat,
    case,
    contents,
    expect,
    minute,
    said,
    same,
    seqs,
    shown,
    tell,
    text_of,
    tokens_of,
    tool_use,
)
from holdfast.types import Message

# prompt


@case("prompt")
def a_prompt_has_all_its_parts(memory: Whole) -> None:
    """Expect the system text, and what was said, oldest first."""
    chat = memory.chat("c")
    tell(chat, 4)
    prompt = chat.prompt(100_000, system="You know about cranes.")
    expect(
        prompt.system.startswith("You know about cranes."),
        "A prompt begins with the system text that was given.",
    )
    same(seqs(prompt.window.messages), [1, 2, 3, 4], "`prompt.window` is what is shown of the chat.")
    same(
        [message["content"] for message in prompt.messages][-4:],
        contents(prompt.window.messages),
        "The messages of a prompt end with those of its window, word for word.",
    )
    same(
        [message["role"] for message in prompt.messages][-4:],
        ["user", "assistant", "user", "assistant"],
        "The messages of a prompt say who speaks.",
    )


@case("prompt")
def a_prompt_keeps_to_its_budget(memory: Whole) -> None:
    """Expect its account to be within the budget, where the newest message and what must be shown fit."""
    chat = memory.chat("c")
    cost = tokens_of(tell(chat, 20))
    for budget in (cost // 5, cost // 2, cost, 100 * cost):  # whatever the provider counts as a token
        prompt = chat.prompt(budget, system="You know about cranes.")
        expect(prompt.tokens["total"] <= budget, "`prompt.tokens['total']` is within the budget.")
        same(prompt.tokens["budget"], budget, "`prompt.tokens['budget']` is the budget that was given.")
        expect(prompt.window.messages[-1].seq == 20, "A prompt shows the newest message.")


@case("prompt")
def a_prompt_shows_calls_with_their_results(memory: Whole) -> None:
    """Expect the chat format of OpenAI, whatever the budget."""
    chat = memory.chat("c")
    for n in range(1, 5):
        chat.append(tool_use(n, f"call-{n}"))
    for budget in (30, 60, 120, 200, 100_000):
        messages = chat.prompt(budget).messages
        answered = [message.get("tool_call_id") for message in messages if message["role"] == "tool"]
        called = [call.get("id") for message in messages for call in _calls(message)]
        same(
            answered, called, "A prompt shows each call with its result, by `tool_calls` and `tool_call_id`."
        )


def _calls(message: dict[str, object]) -> list[dict[str, object]]:
    calls = message.get("tool_calls") or []
    return calls if isinstance(calls, list) else []


@case("prompt")
def a_prompt_stores_nothing(memory: Whole) -> None:
    """Expect that making one is a read: it can be made again, and is the same."""
    chat = memory.chat("c")
    tell(chat, 4)
    before = chat.prompt(1_000)
    same(shown(chat.prompt(1_000)), shown(before), "A prompt that is made twice is the same.")
    same(chat.stats().messages, 4, "Making a prompt stores no message.")


@case("prompt", "recall")
def a_prompt_shows_what_is_recalled(memory: Whole) -> None:
    """Expect what answers the query to stand in it, from whichever chat."""
    memory.chat("one").append([Message("user", "The quokka sleeps in the harbour.", at=minute(1))])
    chat = memory.chat("other")
    chat.append([Message("user", "Where does the quokka sleep?", at=minute(2))])
    expect("in the harbour" not in shown(chat.prompt()), "Without a query, a prompt recalls nothing.")
    prompt = chat.prompt(query="Where does the quokka sleep?")
    expect(
        "The quokka sleeps in the harbour." in shown(prompt), "With a query, a prompt shows what answers it."
    )
    same([(hit.chat, hit.seq) for hit in prompt.hits], [("one", 1)], "`prompt.hits` is what was recalled.")


@case("prompt", "profile")
def a_prompt_shows_the_constraints(memory: Whole) -> None:
    """Expect what always holds to stand in each prompt, even in one that has no room for anything else."""
    memory.remember("No calls after nine.", "constraint", by="user")
    chat = memory.chat("c")
    tell(chat, 4)
    expect(
        "No calls after nine." in chat.prompt(10).system,
        "A prompt shows the constraints, whatever its budget.",
    )


@case("prompt", "profile")
def a_prompt_shows_profile_and_soul(memory: Whole) -> None:
    """Expect to see who the user is, and what the agent is."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    memory.remember("A patient coach.", "soul", by="user")
    text = memory.chat("c").prompt().system
    expect("Lives in Lisbon." in text, "A prompt shows the profile.")
    expect("A patient coach." in text, "A prompt shows the soul.")


# snapshots


@case("snapshots", "prompt", "profile", "versions")
def the_first_prompt_freezes_what_is_known(memory: Whole) -> None:
    """Expect that what others learn later does not change the prompts of a chat that runs."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    chat = _begun(memory, "c")
    same(memory.chat("c").snapshot(), None, "Before the first prompt of a chat, there is no snapshot.")
    expect("Lives in Lisbon." in shown(chat.prompt()), "The first prompt shows what is known now.")
    same(chat.snapshot(), 1, "The first prompt of a chat takes a snapshot of the newest version.")
    memory.remember("Has two cats.", "profile", by="user")
    same(chat.snapshot(), 1, "A snapshot stays when something is written outside of the chat.")
    text = shown(memory.chat("c").prompt())
    expect(
        "Lives in Lisbon." in text and "two cats" not in text,
        "A prompt shows what was known at the snapshot.",
    )
    same(
        text_of(memory.get("profile")),
        "Has two cats.",
        "A snapshot is of prompts only: everybody else reads the newest.",
    )


def _begun(memory: Whole, id: str) -> WholeChat:
    chat = memory.chat(id)
    chat.append([said(1)])
    return chat


@case("snapshots", "prompt", "profile", "versions")
def a_snapshot_moves_on_when_told(memory: Whole) -> None:
    """Expect `advance` to show what is known by then."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    chat = _begun(memory, "c")
    chat.prompt()
    memory.remember("Has two cats.", "profile", by="user")
    same(chat.refresh(), 2, "`advance` returns the newest version.")
    same(chat.snapshot(), 2, "`advance` moves the snapshot to the newest version.")
    expect("Has two cats." in shown(chat.prompt()), "After `advance`, prompts show what is known now.")


@case("snapshots", "prompt", "profile", "versions")
def a_new_chat_begins_with_the_newest(memory: Whole) -> None:
    """Expect that what one chat is frozen at is its own matter."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    _begun(memory, "old").prompt()
    memory.remember("Has two cats.", "profile", by="user")
    new = _begun(memory, "new")
    expect("Has two cats." in shown(new.prompt()), "The first prompt of a new chat shows the newest version.")
    same((memory.chat("old").snapshot(), new.snapshot()), (1, 2), "Each chat has its own snapshot.")


@case("snapshots", "prompt", "profile", "versions")
def the_first_snapshot_of_a_new_user_is_one(memory: Whole) -> None:
    """Expect a chat that began when nothing was known to show nothing of what comes later: 0 is a version."""
    chat = _begun(memory, "c")
    chat.prompt()
    same(chat.snapshot(), 0, "The snapshot of a chat that began when nothing was known is 0.")
    memory.remember("Lives in Lisbon.", "profile", by="user")
    expect(
        "Lives in Lisbon." not in shown(chat.prompt()),
        "A snapshot of version 0 shows nothing of what comes later.",
    )


@case("snapshots", "versions")
def advancing_writes_no_version(memory: Whole) -> None:
    """Expect nothing to change where nothing is known."""
    chat = memory.chat("c")
    chat.append([said(1)])
    same(chat.refresh(), 0, "`advance` where nothing is known stays at version 0.")
    same(memory.version(), 0, "`advance` counts no version.")


@case("snapshots", "prompt", "profile")
def a_chat_shows_what_was_learned_in_it(memory: Whole) -> None:
    """Expect what is written in its course to be in its next prompt, by an agent or the user."""
    chat = _begun(memory, "c")
    chat.prompt()
    memory.remember("Lives in Lisbon.", "profile", by="agent", chat="c")
    expect(
        "Lives in Lisbon." in shown(chat.prompt()), "A chat shows the profile that was written in its course."
    )
    memory.remember("A patient coach.", "soul", by="user", chat="c")
    expect(
        "A patient coach." in shown(chat.prompt()), "A chat shows the soul that was written in its course."
    )


@case("snapshots", "prompt", "profile")
def reflection_does_not_move_a_snapshot(memory: Whole) -> None:
    """Expect what is learned from a running chat to wait for the next one."""
    chat = _begun(memory, "c")
    chat.prompt()
    memory.remember("Lives in Lisbon.", "profile", by="reflect")
    expect("Lives in Lisbon." not in shown(chat.prompt()), "What reflection writes waits for the next chat.")
