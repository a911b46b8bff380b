"""prompt, snapshots: what is sent to a model, and as of which version."""

from __future__ import annotations

from typing import Any

from holdfast.testing.case import (
    CATS,
    COACH,
    LISBON,
    QUOKKA,
    FullChat,
    FullProvider,
    case,
    contents,
    expect,
    fill,
    filled,
    prompt_text,
    same,
    say,
    seqs,
    text_of,
    tokens_of,
    tool_use,
)


def _shows(chat: FullChat, *texts: str) -> list[bool]:
    """Return which texts the next prompt of a chat shows."""
    text = prompt_text(chat.prompt())
    return [wanted in text for wanted in texts]


# prompt


@case("prompt")
def a_prompt_has_all_its_parts(memory: FullProvider) -> None:
    """A prompt begins with the system text and ends with the messages of its window, with their roles."""
    chat = filled(memory, 4)
    prompt = chat.prompt(100_000, system="You know about cranes.")
    expect(prompt.system.startswith("You know about cranes."), f"`system` is {prompt.system!r}.")
    same(seqs(prompt.window.messages), [1, 2, 3, 4], "`window`")
    newest = prompt.messages[-4:]
    same([item["content"] for item in newest], contents(prompt.window.messages), "Contents of the messages")
    same([item["role"] for item in newest], ["user", "assistant"] * 2, "Roles of the messages")


@case("prompt")
def a_prompt_is_within_its_budget(memory: FullProvider) -> None:
    """`prompt.tokens` has the budget and a total within it; the newest message is always shown."""
    chat = memory.chat("c")
    cost = tokens_of(fill(chat, 20))
    # Of what the provider counts as a token.
    for budget in (cost // 5, cost // 2, cost, 100 * cost):
        prompt = chat.prompt(budget, system="You know about cranes.")
        expect(prompt.tokens["total"] <= budget, f"The total is {prompt.tokens['total']} of {budget}.")
        same(prompt.tokens["budget"], budget, "`tokens['budget']`")
        same(prompt.window.messages[-1].seq, 20, "The newest message")


@case("prompt")
def a_prompt_shows_calls_with_their_results(memory: FullProvider) -> None:
    """A prompt shows each call with its result, in the chat format of OpenAI, whatever the budget."""
    chat = memory.chat("c")
    for n in range(1, 5):
        chat.append(tool_use(n, f"call-{n}"))
    for budget in (30, 60, 120, 200, 100_000):
        messages: list[dict[str, Any]] = chat.prompt(budget).messages
        results = [item.get("tool_call_id") for item in messages if item["role"] == "tool"]
        same(results, [call["id"] for item in messages for call in item.get("tool_calls") or ()], "Results")


@case("prompt")
def a_prompt_stores_nothing(memory: FullProvider) -> None:
    """A prompt that is made twice is the same, and stores no message."""
    chat = filled(memory, 4)
    before = chat.prompt(1_000)
    same(prompt_text(chat.prompt(1_000)), prompt_text(before))
    same(chat.stats().messages, 4, "`stats().messages`")


@case("prompt", "recall")
def a_prompt_shows_what_is_recalled(memory: FullProvider) -> None:
    """A prompt with a query shows and lists the hits from other chats; without one, it recalls nothing."""
    say(memory.chat("one"), QUOKKA)
    chat = memory.chat("other")
    say(chat, "Where does the quokka sleep?")
    same(_shows(chat, "in the harbour"), [False], "Shown without a query")
    prompt = chat.prompt(query="Where does the quokka sleep?")
    expect(QUOKKA in prompt_text(prompt), "The hit is not shown.")
    same([(hit.chat, hit.seq) for hit in prompt.hits], [("one", 1)], "`hits`")


@case("prompt", "profile")
def a_prompt_shows_the_constraints(memory: FullProvider) -> None:
    """A prompt shows the constraints, whatever its budget."""
    memory.remember("No calls after nine.", "constraint", by="user")
    chat = filled(memory, 4)
    expect("No calls after nine." in chat.prompt(10).system)


@case("prompt", "profile")
def a_prompt_shows_profile_and_soul(memory: FullProvider) -> None:
    """The system text of a prompt has the profile and the soul."""
    memory.remember(LISBON, "profile", by="user")
    memory.remember(COACH, "soul", by="user")
    text = memory.chat("c").prompt().system
    same([wanted in text for wanted in (LISBON, COACH)], [True, True], "Profile and soul in the text")


# snapshots


@case("snapshots", "prompt", "profile", "versions")
def the_first_prompt_takes_a_snapshot(memory: FullProvider) -> None:
    """The first prompt of a chat fixes the version that its prompts show; other readers see the newest."""
    memory.remember(LISBON, "profile", by="user")
    chat = filled(memory, 1)
    same(memory.chat("c").snapshot(), None, "`snapshot` before the first prompt")
    same(_shows(chat, LISBON), [True], "Shown in the first prompt")
    same(chat.snapshot(), 1, "`snapshot` after it")
    memory.remember(CATS, "profile", by="user")
    same(chat.snapshot(), 1, "`snapshot` after another write")
    same(_shows(memory.chat("c"), LISBON, CATS), [True, False], "Shown after another write")
    same(text_of(memory.get("profile")), CATS, "Profile")


@case("snapshots", "prompt", "profile", "versions")
def refresh_moves_the_snapshot(memory: FullProvider) -> None:
    """`refresh` moves the snapshot to the newest version and returns it, and prompts show that version."""
    memory.remember(LISBON, "profile", by="user")
    chat = filled(memory, 1)
    chat.prompt()
    memory.remember(CATS, "profile", by="user")
    same((chat.refresh(), chat.snapshot()), (2, 2), "`refresh` and `snapshot`")
    same(_shows(chat, CATS), [True], "Shown")


@case("snapshots", "prompt", "profile", "versions")
def a_new_chat_shows_the_newest_version(memory: FullProvider) -> None:
    """Each chat has its own snapshot, which its first prompt takes of the newest version."""
    memory.remember(LISBON, "profile", by="user")
    filled(memory, 1, "old").prompt()
    memory.remember(CATS, "profile", by="user")
    new = filled(memory, 1, "new")
    same(_shows(new, CATS), [True], "Shown")
    same((memory.chat("old").snapshot(), new.snapshot()), (1, 2), "Snapshots of the old and the new chat")


@case("snapshots", "prompt", "profile", "versions")
def version_zero_is_a_snapshot(memory: FullProvider) -> None:
    """A chat that began when nothing was known shows nothing of what is written later."""
    chat = filled(memory, 1)
    chat.prompt()
    same(chat.snapshot(), 0, "`snapshot`")
    memory.remember(LISBON, "profile", by="user")
    same(_shows(chat, LISBON), [False], "Shown")


@case("snapshots", "versions")
def refresh_writes_no_version(memory: FullProvider) -> None:
    """`refresh` returns 0 where nothing is known, and writes no version."""
    same(filled(memory, 1).refresh(), 0)
    same(memory.version(), 0, "Version")


@case("snapshots", "prompt", "profile")
def a_chat_shows_what_is_written_in_it(memory: FullProvider) -> None:
    """The next prompt of a chat shows what an agent or the user wrote with this `chat`."""
    chat = filled(memory, 1)
    chat.prompt()
    memory.remember(LISBON, "profile", by="agent", chat="c")
    same(_shows(chat, LISBON), [True], "Profile shown")
    memory.remember(COACH, "soul", by="user", chat="c")
    same(_shows(chat, COACH), [True], "Soul shown")


@case("snapshots", "prompt", "profile")
def reflection_does_not_move_a_snapshot(memory: FullProvider) -> None:
    """What reflection writes is shown from the next chat on."""
    chat = filled(memory, 1)
    chat.prompt()
    memory.remember(LISBON, "profile", by="reflect")
    same(_shows(chat, LISBON), [False], "Shown")
