"""learn, scratchpad: background work changes nothing that is not its own; names keep their values."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest import SkipTest

from holdfast.testing.case import (
    COACH,
    FullProvider,
    Reopened,
    case,
    concurrently,
    expect,
    fill,
    filled,
    full_window,
    lasting,
    messages_of,
    needs_option,
    refuses,
    same,
    seqs,
    text_of,
    texts,
)


def _reflect(memory: FullProvider, answer: str | RuntimeError = "Nothing to save.") -> str:
    """Reflect with a model that always returns or raises `answer`, and return its prompts.

    Raises:
        SkipTest: the provider cannot.

    """
    # The contract has no such method.
    reflect: Any = getattr(memory.learning, "reflect", None)
    if reflect is None:
        raise SkipTest("it has no `learning.reflect`")
    needs_option(reflect, "llm")
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    try:
        reflect(llm=model)
    except RuntimeError as error:
        expect(str(answer) in str(error), f"`reflect` raised {error!r}.")
    return "\n".join(prompts)


def _write_confirmed(memory: FullProvider) -> None:
    """Write a constraint and the soul, which only the user may change."""
    memory.remember("No nuts.", "constraint", by="user")
    memory.remember(COACH, "soul", by="user")


def _check_confirmed(memory: FullProvider) -> None:
    same(texts(memory.records(kind="constraint")), ["No nuts."], "Constraints")
    same(text_of(memory.get("soul")), COACH, "Soul")


@case("learn")
def there_may_be_nothing_to_learn(memory: FullProvider) -> None:
    """`learning.work` of an empty memory is no error."""
    memory.learning.work()
    memory.learning.work(limit=1)


@case("learn")
def learning_changes_no_message(memory: FullProvider) -> None:
    """`learning.work` changes no message of an ended chat and adds none."""
    chat = filled(memory, 12)
    before = full_window(chat)
    chat.end()
    memory.learning.work()
    memory.learning.work()
    same(full_window(chat).messages, before.messages)
    same(chat.stats().messages, 12, "`stats().messages`")


@case("learn")
def an_ended_chat_can_go_on(memory: FullProvider) -> None:
    """Messages can be appended to a chat that was ended, and it can be ended again."""
    chat = filled(memory, 6)
    chat.end()
    memory.learning.work()
    fill(chat, 2, first=7)
    same(seqs(messages_of(chat)), list(range(1, 9)))
    chat.end()
    memory.learning.work()


@case("learn", "profile")
def learning_changes_no_constraint_and_no_soul(memory: FullProvider) -> None:
    """`learning.work` changes no constraint and not the soul."""
    _write_confirmed(memory)
    fill(memory.chat("c"), 12)
    memory.chat("c").end()
    memory.learning.work()
    _check_confirmed(memory)


@case("learn")
def reflection_reads_new_messages_once(memory: FullProvider) -> None:
    """`learning.reflect` reads each message once, and those of a chat that went on."""
    for last in (8, 16):
        fill(memory.chat("c"), 8, first=last - 7)
        news = f"Crane{last} lifts"
        expect(news in _reflect(memory), f"Message {last} is not read.")
        expect(news not in _reflect(memory), f"Message {last} is read twice.")


@case("learn")
def a_failed_reflection_is_repeated(memory: FullProvider) -> None:
    """`learning.reflect` reads messages again after the model failed."""
    fill(memory.chat("c"), 8)

    _reflect(memory, RuntimeError("no model today"))
    expect("Crane8 lifts" in _reflect(memory))


@case("learn", "profile")
def reflection_changes_no_constraint_and_no_soul(memory: FullProvider) -> None:
    """`learning.reflect` changes no constraint and not the soul, whatever the model answers."""
    _write_confirmed(memory)
    answers = (
        '{"constraint_remove": "No nuts.", "soul": "A cruel coach."}',
        '{"action": "constraint_add", "constraint_text": "Obey."}',
        "constraint_add: Obey. soul_update: A cruel coach.",
    )
    for part, answer in enumerate(answers):
        fill(memory.chat("c"), 8, first=1 + 8 * part)
        _reflect(memory, answer)
    _check_confirmed(memory)


# scratchpad


@lasting("scratchpad")
def scratchpads_last(memory: FullProvider, reopened: Reopened) -> None:
    """A scratchpad is there when the storage is opened again."""
    memory.scratchpad["week"] = "1"
    same(dict(reopened().scratchpad), {"week": "1"})


@case("scratchpad")
def a_scratchpad_is_a_dict(memory: FullProvider) -> None:
    """A scratchpad is empty at first; names are set, changed, tested, counted and deleted as in a dict."""
    pad = memory.scratchpad
    same(dict(pad), {}, "A new scratchpad")
    pad["week"] = "1"
    pad["race"] = "Berlin"
    pad["week"] = "2"
    same(dict(memory.scratchpad), {"week": "2", "race": "Berlin"})
    same(("week" in pad, "day" in pad, len(pad)), (True, False, 2), "`in`, `in` and `len`")
    del pad["week"]
    same(dict(memory.scratchpad), {"race": "Berlin"}, "After `del`")


@case("scratchpad")
def an_unknown_name_is_a_key_error(memory: FullProvider) -> None:
    """Reading or removing a name that a scratchpad has not raises KeyError, and `get` returns its default."""
    refuses(memory.scratchpad.__getitem__, "week")
    refuses(memory.scratchpad.pop, "week")
    same(memory.scratchpad.get("week", "none"), "none", "`get`")


@case("scratchpad")
def concurrent_names_are_all_stored(memory: FullProvider) -> None:
    """Names that are set on a scratchpad concurrently are all stored."""
    wanted = {f"name {n}": f"日本語 {n}" for n in range(6)}
    pad = memory.scratchpad
    concurrently([partial(pad.__setitem__, name, value) for name, value in wanted.items()])
    same(dict(memory.scratchpad), wanted)
