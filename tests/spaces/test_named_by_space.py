"""What is shown of another space is named with it, wherever a name is noted, printed or taken."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast import InvalidInput, Memory, Message
from holdfast_cli.hooks.prompt_context import prompt_context

PORT = "The capybara server listens on port 8123 behind the proxy."
LUNCH = "Entirely different: lunch is at noon in the canteen."
ASKED = "Which port does the capybara server listen on?"


@pytest.fixture
def shop(app: Memory) -> Memory:
    """Fill two chats of one name: of the user, and of a project."""
    project = app.scoped(user="ada", project="shop")
    app.scoped(user="ada").chat("talk").append(role="user", content=PORT)
    project.chat("talk").append(role="user", content=LUNCH)
    return project


def expanded(memory: Memory, name: str) -> str:
    (expand,) = memory.tools(allow=["expand"])
    return expand({"id": name}).text


def test_a_hook_names_the_space_of_what_it_shows(shop: Memory) -> None:
    context = prompt_context(shop, ASKED, "s1", ())
    assert "port 8123" in context.text
    assert context.shown == ("user|talk#1",)
    assert context.text.splitlines()[-1] == "Sources: user|talk#1"
    assert "port 8123" in expanded(shop, "user|talk#1")
    assert prompt_context(shop, ASKED, "s1", context.shown).text == ""
    lunch = prompt_context(shop, "When is lunch in the canteen?", "s1", context.shown)
    assert lunch.shown == ("talk#1",)
    assert "noon" in expanded(shop, "talk#1")


def test_a_record_is_not_shown_after_the_message_it_was_learned_from(app: Memory, shop: Memory) -> None:
    ada = app.scoped(user="ada")
    record = ada.remember("The capybara server listens on port 8123.", chat="talk", messages=(1, 1))
    (name, *_) = prompt_context(shop, ASKED, "s1", ()).shown
    assert name in (record.id, "user|talk#1")
    assert prompt_context(shop, ASKED, "s1", (record.id, "user|talk#1")).text == ""
    assert record.id not in prompt_context(shop, ASKED, "s1", ("user|talk#1",)).shown


def test_a_prompt_and_its_receipt_name_the_space(shop: Memory) -> None:
    chat = shop.chat("monday")
    chat.append(role="user", content=ASKED)
    chat.prompt(2_000, ASKED)
    answer = chat.append(role="assistant", content="It listens on port 8123.")
    assert "user|talk#1" in answer.shown
    assert "talk#1" not in answer.shown
    assert "user|talk#1" in chat.receipts()[-1].hits
    assert shop.learning.feedback("user|talk#1", helpful=True, query=ASKED).chat == ""
    (recall,) = shop.tools(shop.chat("friday"), allow=["recall"])
    shop.chat("friday").append(role="user", content=ASKED)
    recall({"query": "capybara server port", "limit": 1})
    assert shop.chat("friday").append(role="assistant", content="8123").shown == ("user|talk#1",)


@pytest.mark.parametrize(
    ("shown", "learned"),
    [(("user|talk#2",), 0), (("talk#2",), 0), (("project:shop|talk#2",), 1)],
    ids=["with its space", "as it was stored before", "of another one"],
)
def test_what_was_shown_of_another_space_is_no_news(
    app: Memory, shop: Memory, shown: tuple[str, ...], learned: int
) -> None:
    repeated = "We decided to use PostgreSQL 16 for the billing service."
    # Said later, so that no search for what was said before finds it.
    later = datetime(2090, 1, 1, tzinfo=UTC)
    app.scoped(user="ada").chat("talk").append(Message("user", repeated, at=later))
    chat = shop.chat("monday")
    chat.append(role="user", content="Which database was it, again?")
    chat.append(Message("assistant", repeated, shown=shown))
    chat.extract()
    assert len(shop.records()) == learned


def test_what_is_explained_is_named_by_its_space(app: Memory, shop: Memory) -> None:
    for name, text in (("user|talk#1", PORT), ("project:shop|talk#1", LUNCH), ("talk#1", LUNCH)):
        assert shop.explain("capybara port", name).hit.text == text
    assert "user|talk#1" in str(shop.explain("capybara server lunch port", "talk#1")), "the hit above it"
    record = app.scoped(user="ada").remember("Capybaras are large.")
    assert shop.explain("capybaras", f"user|{record.id}").hit.id == record.id
    with pytest.raises(InvalidInput, match="not found"):
        shop.explain("capybaras", f"project:shop|{record.id}")


def test_no_name_reaches_a_space_that_is_not_read(app: Memory, shop: Memory) -> None:
    app.scoped(user="bob").chat("talk").append(role="user", content="capybara secrets")
    app.scoped(user="bob").grants.add("user", to="user:ada")
    for name in ("user:bob|talk#1", "user:bob|talk", "team:core|talk#1", "nothing|talk#1", "|talk#1"):
        with pytest.raises(InvalidInput, match="not found"):
            shop.explain("capybara", name)
    reading = app.scoped(user="ada", project="shop", reads=["user:bob"])
    assert reading.explain("capybara", "user:bob|talk#1").hit.text == "capybara secrets"


def test_without_projects_a_chat_may_begin_like_a_space(app: Memory) -> None:
    ada = app.scoped(user="ada")
    ada.chat("user|talk").append(role="user", content=PORT)
    app.chat("user|talk").append(role="user", content=LUNCH)
    assert ada.explain("capybara port", "user|talk#1").hit.text == PORT
    assert ada.explain("capybara port", "tenant|user|talk#1").hit.text == LUNCH


def test_a_grant_is_seen_by_the_user_who_has_it(app: Memory) -> None:
    ada, bob = app.scoped(user="ada"), app.scoped(user="bob")
    app.grants.add("team:core", to="user:ada", why="she joined")
    app.grants.add("team:core", to="user:bob", rights="write")
    app.grants.add("team:ops", to="user:bob")
    bob.grants.add("project:blog", to="user:ada")
    bob.grants.add("user", to="user:cleo")
    ada.grants.add("project:shop", to="user:bob")
    ada.grants.add("user", to="user:ada")
    other = app.scoped(tenant="b", user="ada")
    app.scoped(tenant="b").grants.add("team:core", to="user:ada", rights="write")
    assert [(one.space, one.to, one.rights) for one in other.grants] == [("team:core", "user:ada", "write")]
    mine = [(one.space, one.to, one.rights) for one in ada.grants]
    assert mine == [
        ("team:core", "user:ada", "read"),
        ("user", "user:ada", "read"),
        ("project:shop", "user:bob", "read"),
        ("user:bob/project:blog", "user:ada", "read"),
    ]
    # The same of a handle on the team, which tells nothing of its others.
    of_team = app.scoped(user="ada", team="core").grants
    assert [(one.space, one.to, one.rights) for one in of_team] == mine
    assert len(ada.grants) == 4
    app.grants.revoke("team:core", to="user:ada")
    assert "team:core" not in {one.space for one in ada.grants}
    assert len(app.grants) == 6
