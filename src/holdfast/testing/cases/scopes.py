"""scopes: nothing of one user is shown to another, by any method."""

from __future__ import annotations

from holdfast.testing.case import (
    COACH,
    LISBON,
    QUOKKA,
    FullProvider,
    case,
    contents,
    expect,
    fill,
    messages_of,
    refuses,
    same,
    sample,
    say,
    text_of,
    texts,
)
from holdfast.testing.cases.summaries import compacted
from holdfast.types import ChatStats


@case("scopes")
def users_share_no_messages(memory: FullProvider) -> None:
    """The same id is another chat for another user."""
    eve = memory.scoped(user="eve")
    say(memory.chat("c"), "a word of the first user")
    same(eve.chat("c").stats(), ChatStats())
    same(messages_of(eve.chat("c")), [])
    say(eve.chat("c"), "a word of eve")
    same(contents(messages_of(memory.chat("c"))), ["a word of the first user"])


@case("scopes")
def handles_of_one_user_share_the_storage(memory: FullProvider) -> None:
    """Two handles for one user see the same chats, and `scoped()` without arguments keeps the user."""
    memory.scoped(user="eve").chat("c").append([sample(1)])
    same(memory.scoped(user="eve").chat("c").stats().messages, 1)
    fill(memory.chat("c"), 2)
    same(memory.scoped().chat("c").stats().messages, 2, "`scoped()`")


@case("scopes", "search")
def search_finds_nothing_of_another_user(memory: FullProvider) -> None:
    """`search` finds no message of another user, not even in a chat with the same id."""
    say(memory.chat("c"), QUOKKA)
    same(memory.scoped(user="eve").chat("c").search("quokka"), [])


@case("scopes", "recall")
def recall_finds_no_message_of_another_user(memory: FullProvider) -> None:
    """`recall` finds no message of another user."""
    say(memory.chat("c"), QUOKKA)
    same(memory.scoped(user="eve").recall("quokka"), [])


@case("scopes", "recall", "records")
def recall_finds_no_record_of_another_user(memory: FullProvider) -> None:
    """`recall` finds no record of another user."""
    memory.remember(QUOKKA, by="user")
    same(memory.scoped(user="eve").recall("quokka"), [])


def _check_no_access(memory: FullProvider, kind: str) -> None:
    """Check that a record of a kind can be neither listed nor changed by another user."""
    eve = memory.scoped(user="eve")
    record = memory.remember(QUOKKA, kind, by="user")
    same(eve.records(kind=kind), [], "`records`")
    refuses(eve.replace, record.id, "It is awake.", by="user")
    refuses(eve.retract, record.id, by="user")
    same(texts(memory.records(kind=kind)), [QUOKKA], "`records` of the owner")


@case("scopes", "records")
def records_of_another_user_are_closed(memory: FullProvider) -> None:
    """Records of another user are not listed, and cannot be replaced or retracted by their ids."""
    _check_no_access(memory, "fact")


@case("scopes", "profile")
def constraints_of_another_user_are_closed(memory: FullProvider) -> None:
    """Constraints of another user are not listed, and cannot be replaced or retracted by their ids."""
    _check_no_access(memory, "constraint")


@case("scopes", "profile")
def each_user_has_a_profile(memory: FullProvider) -> None:
    """The profile and soul of one user are not those of another."""
    memory.remember(LISBON, "profile", by="user")
    memory.remember(COACH, "soul", by="user")
    eve = memory.scoped(user="eve")
    same((text_of(eve.get("profile")), text_of(eve.get("soul"))), ("", ""))


@case("scopes", "profile")
def each_agent_has_a_soul(memory: FullProvider) -> None:
    """The soul of one agent is not that of another."""
    memory.scoped(agent="coach").remember(COACH, "soul", by="user")
    same(text_of(memory.scoped(agent="cook").get("soul")), "", "Soul of another agent")
    same(text_of(memory.scoped(agent="coach").get("soul")), COACH, "Soul of the agent")


@case("scopes", "changes", "records")
def changes_of_another_user_are_not_listed(memory: FullProvider) -> None:
    """`changes` lists nothing of another user."""
    memory.remember(QUOKKA, by="user")
    same(memory.scoped(user="eve").changes(), [])


@case("scopes", "sessions")
def chats_of_another_user_are_not_listed(memory: FullProvider) -> None:
    """`chats` lists the chats of its own user only, and names the user of each."""
    eve = memory.scoped(user="eve")
    fill(memory.chat("mine"), 1)
    fill(eve.chat("hers"), 1)
    same([chat.id for chat in memory.chats()], ["mine"])
    same([(chat.id, chat.user) for chat in eve.chats()], [("hers", "eve")])


@case("scopes", "sessions")
def chats_are_listed_by_agent(memory: FullProvider) -> None:
    """A handle for an agent lists the chats that it opened or wrote in; one without an agent lists all."""
    fill(memory.scoped(agent="coach").chat("run"), 1)
    fill(memory.scoped(agent="cook").chat("bake"), 1)
    fill(memory.scoped(agent="baker").chat("bake"), 1)
    same([(chat.id, chat.agent) for chat in memory.scoped(agent="baker").chats()], [("bake", "cook")])
    same([(chat.id, chat.agent) for chat in memory.scoped(agent="coach").chats()], [("run", "coach")])
    same({chat.id for chat in memory.scoped(agent="").chats()}, {"run", "bake"}, "Without an agent")


@case("scopes", "review")
def a_review_shows_nothing_of_another_user(memory: FullProvider) -> None:
    """`review` shows nothing of another user."""
    fill(memory.chat("c"), 3)
    same(memory.scoped(user="eve").chat("c").review(), "")


@case("scopes", "scratchpad")
def each_user_has_a_scratchpad(memory: FullProvider) -> None:
    """The scratchpad of one user is not that of another."""
    memory.scratchpad["week"] = "1"
    expect("week" not in memory.scoped(user="eve").scratchpad)


@case("scopes", "compact", "explore")
def summaries_of_another_user_are_closed(memory: FullProvider) -> None:
    """Summaries of another user can be neither described nor expanded by their ids, in any chat."""
    _, window = compacted(memory)
    eve = memory.scoped(user="eve")
    fill(eve.chat("c"), 2)
    for chat in (eve.chat("c"), eve.chat("other")):
        for summary in window.summaries:
            refuses(chat.describe, summary.id)
            refuses(chat.expand, summary.id)
