"""Repetitions of the memory are told from news: blocks of prompts, results of tools, sentences said again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory, Message, ToolCall
from holdfast.learning.echo_match import is_memory_tool, recalled_seqs, restates, without_injected
from tables import each

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)

# What our prompts put in


def prompted() -> list[str]:
    """Give the texts of a prompt with all that a memory can put into one, but for its own messages."""
    with Memory(":memory:", user="ada") as memory:
        memory.remember("Ada lives in <Lisbon>.", kind="fact", by="user")
        memory.chat("old").append(role="user", content="My dog is called Rex.", at=NOON)
        chat = memory.chat("new")
        chat.append(role="user", content="What is my dog called?")
        with chat.run() as run:
            run.remember("Look for the dog.")
            prompt = chat.prompt(query="dog")
        texts = [prompt.system, *(str(message["content"]) for message in prompt.messages)]
        texts.append(memory.chat("old").review())
        return [text for text in texts if text and text != "What is my dog called?"]


def test_all_that_a_prompt_puts_in_is_left_out() -> None:
    texts = prompted()
    together = "\n".join(texts)
    assert "Lisbon" in together
    assert "Rex" in together
    assert "Look for" in together
    assert [without_injected(text).strip() for text in texts] == [""] * len(texts)
    assert without_injected(f"You help.\n{together}\nBye.").split() == ["You", "help.", "Bye."]


@each(
    ("text", "left"),
    [
        ("a <memory>b</memory> c <known>d</known> e", "a c e"),
        ("<memory>a <recalled>b</recalled> c</memory> d", "d"),
        ("a\n<recalled>\nb\n\nc", "a"),
        ("<recalled>\nb </known> c", ""),
    ],
)
def test_blocks_are_left_out(text: str, left: str) -> None:
    assert " ".join(without_injected(text).split()) == left


@each(
    "text",
    [
        "#include <memory>\nstd::unique_ptr<int> p;",
        "a < b and c > d",
        "<details><summary>More</summary>text</details>",
        "<conversation>Hi</conversation>",
    ],
)
def test_what_is_no_block_of_ours_stays(text: str) -> None:
    assert without_injected(text) == text


@given(st.text(), st.text())
def test_what_stands_around_a_block_stays(before: str, after: str) -> None:
    if "<" in before + after:
        before, after = before.replace("<", ""), after.replace("<", "")
    # White space before a block that begins a line may go with it.
    assert without_injected(f"{before}<recalled>x</recalled>{after}").split() == f"{before} {after}".split()


# Who brought it


OURS = """recall search_memory recall_fil expand mcp__holdfast__describe holdfast.expand my-memory_describe
mcp__brain__search-memory Recall mcp__server__memory memory search_sessions scratchpad scratchpad_search
mcp__holdfast__search_sessions mcp__holdfast__profile mcp__holdfast__history mcp__holdfast__search
mcp__holdfast__fetch mcp__holdfast__notes"""
OTHERS = """bash recalled product_recall kubectl_describe mcp__aws__describe memory_usage re _ profile history
search fetch notes mcp__git__profile mcp__git__history mcp__git__search mcp__git__fetch mcp__git__notes"""


@each(("names", "is_ours"), [(OURS, True), (OTHERS, False)])
def test_a_tool_of_a_memory_is_known_by_its_name(names: str, *, is_ours: bool) -> None:
    assert [name for name in names.split() if is_memory_tool(name) is not is_ours] == []


def test_a_result_belongs_to_the_nearest_earlier_call_with_its_id() -> None:
    messages = [
        Message("assistant", calls=(ToolCall("a", "recall"),), seq=1),
        Message("tool", "Lisbon", call_id="a", answers=("a",), seq=2),
        Message("assistant", calls=(ToolCall("a", "bash"),), seq=3),
        Message("tool", "ok", call_id="a", answers=("a",), seq=4),
        Message("assistant", calls=(ToolCall("a", "recall"),), seq=5),
    ]
    assert recalled_seqs(messages) == {2}


@each(
    ("message", "told"),
    [
        (Message("tool", "Lisbon", call_id="x", name="holdfast_recall"), {1}),
        (Message("user", "Lisbon", name="recall"), set()),
        (Message("user", "I live in Lisbon.", meta={"origin": "memory"}), {1}),
        (Message("user", "I live in Lisbon.", meta={"origin": "web"}), set()),
        (Message("user", "I live in Lisbon.", meta={"origin": ["recall"]}), set()),
    ],
)
def test_a_message_may_name_its_tool_or_its_origin(message: Message, told: set[int]) -> None:
    assert recalled_seqs([replace(message, seq=1)]) == told


# What is said again

SAID_AGAIN = [
    ("You told me that you live in Lisbon with your dog Rex", ["I live in Lisbon.", "My dog is called Rex."]),
    ("As you said before, the server is on port 8080.", ["The server is on port 8080 by default."]),
    ("You don't eat meat.", ["I do not eat meat, ever."]),
    ("用户住在柏林", ["用户住在柏林。"]),
    ("Lunch is at 12:30.", ["Nothing else is known of the shop.", "Lunch is at half past twelve."]),
]
NEWS = [
    ("Ada lives in Porto.", ["Ada lives in Lisbon.", "Ben lives in Porto."]),
    ("Ben manages Ada.", ["Ada manages Ben."]),
    ("You do not eat meat.", ["I eat meat."]),
    ("The config is in config/dev.yaml.", ["The config is in config/app.yaml."]),
    ("Your cat is called Rex.", ["My dog is called Rex."]),
    ("用户住在柏林", ["用户住在里斯本"]),
    ("You live in Lisbon.", []),
]


@each(("text", "shown"), SAID_AGAIN)
def test_what_was_shown_is_said_again(text: str, shown: list[str]) -> None:
    assert restates(text, shown)


@each(("text", "shown"), NEWS)
def test_what_was_not_shown_is_news(text: str, shown: list[str]) -> None:
    assert not restates(text, shown)


TEXTS = st.lists(
    st.sampled_from([shown for _, some in SAID_AGAIN + NEWS for shown in some if len(shown) > 1]), min_size=1
)


@given(TEXTS)
def test_what_is_repeated_word_for_word_is_no_news(shown: list[str]) -> None:
    assert all(restates(text, shown) for text in shown)


@given(TEXTS, st.integers(10_000, 99_999))
def test_a_new_number_is_always_news(shown: list[str], number: int) -> None:
    assert not restates(f"{shown[0].rstrip('.。')} since build {number}.", shown)
