"""learn, pad: what happens in the background changes nothing that is not its own; names keep their values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, cast
from unittest import SkipTest

from holdfast.testing.case import (
    Again,
    Whole,
    always,
    at_once,
    case,
    everything,
    expect,
    lasting,
    only_if_it_takes,
    refuses,
    same,
    seqs,
    tell,
    text_of,
    texts,
)


class Reflecting(Protocol):
    """Learning that lets a model reflect on chats."""

    def reflect(self, *, llm: Callable[[str], str]) -> object:
        """Reflect on the sessions with news."""


@case("learn")
def there_may_be_nothing_to_learn(memory: Whole) -> None:
    """Expect that this is no error."""
    memory.learning.work()
    memory.learning.work(limit=1)


@case("learn")
def learning_leaves_the_words_alone(memory: Whole) -> None:
    """Expect what was said to be the same before and after."""
    chat = memory.chat("c")
    tell(chat, 12)
    before = everything(chat)
    chat.end()
    memory.learning.work()
    memory.learning.work()
    same(everything(chat).messages, before.messages, "Learning changes nothing of what was said.")
    same(chat.stats().messages, 12, "Learning adds no message.")


@case("learn")
def a_chat_may_go_on_after_its_end(memory: Whole) -> None:
    """Expect the end to be a hint to those who learn, by which nothing is closed."""
    chat = memory.chat("c")
    tell(chat, 6)
    chat.end()
    memory.learning.work()
    tell(chat, 2, first=7)
    same(seqs(everything(chat).messages), list(range(1, 9)), "A chat that was ended can go on.")
    chat.end()
    memory.learning.work()


@case("learn", "profile", "profile")
def learning_leaves_constraints_and_soul_alone(memory: Whole) -> None:
    """Expect that these are for the user to say."""
    memory.remember("No nuts.", "constraint", by="user")
    memory.remember("A patient coach.", "soul", by="user")
    chat = memory.chat("c")
    tell(chat, 12)
    chat.end()
    memory.learning.work()
    same(texts(memory.records(kind="constraint")), ["No nuts."], "Learning adds and removes no constraint.")
    same(text_of(memory.get("soul")), "A patient coach.", "Learning does not change the soul.")


def _reflect(memory: Whole, model: Callable[[str], str]) -> None:
    """Let a model reflect; how it fails, if it does, is for the provider to say.

    Raises:
        SkipTest: the provider cannot.

    """
    if getattr(memory.learning, "reflect", None) is None:
        raise SkipTest("it has no `learning.reflect`")
    reflecting = cast("Reflecting", memory.learning)
    only_if_it_takes(reflecting.reflect, "llm")
    try:
        reflecting.reflect(llm=model)
    except RuntimeError as error:
        expect("no model today" in str(error), "Reflection raises no errors but those of the model.")


@case("learn")
def reflection_reads_what_is_new(memory: Whole) -> None:
    """Expect it to read each session once, and again when it went on."""
    tell(memory.chat("c"), 8)
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "Nothing to save."

    def news() -> list[str]:
        asked.clear()
        _reflect(memory, model)
        return asked

    expect(any("Crane8 lifts" in prompt for prompt in news()), "Reflection reads what was said.")
    expect(
        not any("Crane8 lifts" in prompt for prompt in news()), "Reflection does not read a session twice."
    )
    tell(memory.chat("c"), 8, first=9)
    expect(
        any("Crane16 lifts" in prompt for prompt in news()), "Reflection reads a session again that went on."
    )


@case("learn")
def a_failed_reflection_is_tried_again(memory: Whole) -> None:
    """Expect that what was not understood counts as not read."""
    tell(memory.chat("c"), 8)
    asked: list[str] = []

    def fails(_: str) -> str:
        raise RuntimeError("no model today")

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "Nothing to save."

    _reflect(memory, fails)
    _reflect(memory, model)
    expect(
        any("Crane8 lifts" in prompt for prompt in asked),
        "After a failure, reflection reads the session again.",
    )


@case("learn", "profile", "profile")
def reflection_has_no_way_to_constraints(memory: Whole) -> None:
    """Expect constraints and soul to stay, whatever the model answers."""
    memory.remember("No nuts.", "constraint", by="user")
    memory.remember("A patient coach.", "soul", by="user")
    tell(memory.chat("c"), 8)
    answers = (
        '{"constraint_remove": "No nuts.", "soul": "A cruel coach."}',
        '{"action": "constraint_add", "constraint_text": "Obey."}',
        "constraint_add: Obey. soul_update: A cruel coach.",
    )
    for first, answer in enumerate(answers):
        _reflect(memory, always(answer))
        tell(memory.chat("c"), 8, first=9 + 8 * first)
    same(texts(memory.records(kind="constraint")), ["No nuts."], "Reflection adds and removes no constraint.")
    same(text_of(memory.get("soul")), "A patient coach.", "Reflection does not change the soul.")


# pad


@lasting("scratchpad")
def pads_last(memory: Whole, again: Again) -> None:
    """Expect what was noted when the storage is opened again."""
    memory.scratchpad["week"] = "1"
    same(dict(again().scratchpad), {"week": "1"}, "A pad is there when the storage is opened again.")


@case("scratchpad")
def a_pad_is_a_dict(memory: Whole) -> None:
    """Expect names with values that are set, changed and deleted."""
    pad = memory.scratchpad
    same(dict(pad), {}, "A pad is empty at first.")
    pad["week"] = "1"
    pad["race"] = "Berlin"
    pad["week"] = "2"
    same(
        dict(memory.scratchpad),
        {"week": "2", "race": "Berlin"},
        "A pad keeps names with their newest values.",
    )
    same(("week" in pad, "day" in pad, len(pad)), (True, False, 2), "A pad says which names it has.")
    del pad["week"]
    same(dict(memory.scratchpad), {"race": "Berlin"}, "What is deleted from a pad is gone.")


@case("scratchpad")
def an_unknown_name_is_a_key_error(memory: Whole) -> None:
    """Expect what every dict does."""
    refuses(lambda: memory.scratchpad["week"], "A name that is not on a pad raises KeyError.")
    refuses(lambda: memory.scratchpad.pop("week"), "A name that is not on a pad raises KeyError.")
    same(
        memory.scratchpad.get("week", "none"),
        "none",
        "`get` gives a default for a name that is not on a pad.",
    )


@case("scratchpad")
def pads_keep_every_name_set_at_once(memory: Whole) -> None:
    """Expect nobody's value to be lost because others write as well."""

    def write(n: int) -> None:
        memory.scratchpad[f"name {n}"] = f"日本語 {n}"

    at_once([partial(write, n) for n in range(6)])
    same(
        dict(memory.scratchpad),
        {f"name {n}": f"日本語 {n}" for n in range(6)},
        "Names that are set at once are all kept.",
    )
