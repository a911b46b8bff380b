"""scopes: nobody sees anything of another user, whichever way they look."""

from __future__ import annotations

from functools import partial

from holdfast.testing.case import (
    Whole,
    case,
    contents,
    everything,
    expect,
    refuses,
    said,
    same,
    tell,
    text_of,
    texts,
)
from holdfast.testing.cases.compacting import compacted
from holdfast.types import ChatStats, Message


@case("scopes")
def messages_of_another_user_are_not_seen(memory: Whole) -> None:
    """Expect the same id to be another chat for another user."""
    eve = memory.scoped(user="eve")
    memory.chat("c").append([Message("user", "a word of the first user")])
    same(eve.chat("c").stats(), ChatStats(), "A chat of one user is not counted for another.")
    same(everything(eve.chat("c")).messages, (), "A chat of one user is not shown to another.")
    eve.chat("c").append([Message("user", "a word of eve")])
    same(
        contents(everything(memory.chat("c")).messages), ["a word of the first user"], "Users share no chat."
    )


@case("scopes")
def handles_for_one_user_share_what_is_stored(memory: Whole) -> None:
    """Expect a handle to be a way in, not a store of its own."""
    memory.scoped(user="eve").chat("c").append([said(1)])
    same(
        memory.scoped(user="eve").chat("c").stats().messages,
        1,
        "Two handles for one user see the same chats.",
    )
    tell(memory.chat("c"), 2)
    same(memory.scoped().chat("c").stats().messages, 2, "`scoped()` without a user keeps the one there is.")


@case("scopes", "search")
def searching_finds_nothing_of_another_user(memory: Whole) -> None:
    """Expect nothing, not even in a chat of the same name."""
    memory.chat("c").append([Message("user", "the quokka sleeps")])
    same(memory.scoped(user="eve").chat("c").search("quokka"), [], "`search` finds nothing of another user.")


@case("scopes", "recall")
def recall_finds_nothing_of_another_user(memory: Whole) -> None:
    """Expect no message of anybody else."""
    memory.chat("c").append([Message("user", "the quokka sleeps")])
    same(memory.scoped(user="eve").recall("quokka"), [], "`recall` finds nothing of another user.")


@case("scopes", "recall", "records")
def recall_finds_no_record_of_another_user(memory: Whole) -> None:
    """Expect that what is known of one user is not known of another."""
    memory.remember("The quokka sleeps in the harbour.", by="user")
    same(memory.scoped(user="eve").recall("quokka"), [], "`recall` finds no record of another user.")


@case("scopes", "records")
def records_of_another_user_are_closed(memory: Whole) -> None:
    """Expect them not to be listed, and an id to open nothing."""
    eve = memory.scoped(user="eve")
    record = memory.remember("The quokka sleeps in the harbour.", by="user")
    same(eve.records(), [], "`records` lists nothing of another user.")
    refuses(
        lambda: eve.replace(record.id, "It is awake.", by="user"),
        "A record of another user cannot be replaced.",
    )
    refuses(lambda: eve.retract(record.id, by="user"), "A record of another user cannot be retracted.")
    same(texts(memory.records()), ["The quokka sleeps in the harbour."], "No other user changes a record.")


@case("scopes", "profile")
def each_user_has_a_profile(memory: Whole) -> None:
    """Expect each agent to be another one to each user, too."""
    eve = memory.scoped(user="eve")
    memory.remember("Lives in Lisbon.", "profile", by="user")
    memory.remember("A patient coach.", "soul", by="user")
    same(
        (text_of(eve.get("profile")), text_of(eve.get("soul"))),
        ("", ""),
        "Profile and soul of one user are not those of another.",
    )


@case("scopes", "profile")
def each_agent_has_a_soul(memory: Whole) -> None:
    """Expect that what one agent is, another is not."""
    memory.scoped(agent="coach").remember("A patient coach.", "soul", by="user")
    same(
        text_of(memory.scoped(agent="cook").get("soul")), "", "The soul of one agent is not that of another."
    )
    same(text_of(memory.scoped(agent="coach").get("soul")), "A patient coach.", "An agent keeps its soul.")


@case("scopes", "profile")
def each_user_has_constraints(memory: Whole) -> None:
    """Expect them to hold for the user who confirmed them, and an id to open nothing."""
    eve = memory.scoped(user="eve")
    added = memory.remember("No calls after nine.", "constraint", by="user")
    same(eve.records(kind="constraint"), [], "The constraints of one user are not those of another.")
    refuses(
        lambda: eve.retract(added.id, by="user"),
        "A constraint of another user cannot be removed.",
    )
    same(
        texts(memory.records(kind="constraint")),
        ["No calls after nine."],
        "No other user removes a constraint.",
    )


@case("scopes", "changes", "records")
def changes_of_another_user_are_not_listed(memory: Whole) -> None:
    """Expect an empty list."""
    memory.remember("The quokka sleeps in the harbour.", by="user")
    same(memory.scoped(user="eve").changes(), [], "`changes` lists nothing of another user.")


@case("scopes", "sessions")
def chats_of_another_user_are_not_listed(memory: Whole) -> None:
    """Expect each chat to say whose it is."""
    eve = memory.scoped(user="eve")
    tell(memory.chat("mine"), 1)
    tell(eve.chat("hers"), 1)
    same([one.id for one in memory.chats()], ["mine"], "`chats` lists the chats of its own user only.")
    same([(one.id, one.user) for one in eve.chats()], [("hers", "eve")], "`chats` says whose a chat is.")


@case("scopes", "sessions")
def chats_are_listed_by_agent(memory: Whole) -> None:
    """Expect a chat to belong to the agent that it was opened by, and a handle without an agent to list those of all."""
    tell(memory.scoped(agent="coach").chat("run"), 1)
    tell(memory.scoped(agent="cook").chat("bake"), 1)
    same(
        [(one.id, one.agent) for one in memory.scoped(agent="coach").chats()],
        [("run", "coach")],
        "A handle for an agent lists the chats of this agent only.",
    )
    same(
        {one.id for one in memory.scoped(agent="").chats()},
        {"run", "bake"},
        "Without an agent, all are listed.",
    )


@case("scopes", "review")
def a_review_shows_nothing_of_another_user(memory: Whole) -> None:
    """Expect a reviewer of one user to read nothing of another."""
    tell(memory.chat("c"), 3)
    same(memory.scoped(user="eve").chat("c").review(), "", "`review` shows nothing of another user.")


@case("scopes", "scratchpad")
def each_user_has_a_pad(memory: Whole) -> None:
    """Expect the same name to have another value for another user."""
    memory.scratchpad["week"] = "1"
    expect("week" not in memory.scoped(user="eve").scratchpad, "The pad of one user is not that of another.")


@case("scopes", "compact", "explore")
def summaries_of_another_user_do_not_open(memory: Whole) -> None:
    """Expect an id that somebody got hold of to open nothing, neither in the same chat nor in another."""
    _, window = compacted(memory)
    eve = memory.scoped(user="eve")
    tell(eve.chat("c"), 2)
    for chat in (eve.chat("c"), eve.chat("other")):
        for one in window.summaries:
            refuses(partial(chat.describe, one.id), "A summary of another user is not described.")
            refuses(partial(chat.expand, one.id), "A summary of another user is not expanded.")
