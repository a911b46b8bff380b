"""Grants beside what goes on: handles that are open, iterations that stop, rights that only read."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from holdfast import Denied, Memory, Scratchpad


def test_an_iteration_that_stops_leaves_no_read_open(app: Memory) -> None:
    for name in ("ada", "bob", "eve"):
        app.grants.add("team:core", to=f"user:{name}")
    stopped = iter(app.grants)
    assert next(stopped).to == "user:ada"
    ada = app.scoped(user="ada")
    other = Thread(target=lambda: ada.remember("Deployments need two reviews"), daemon=True)
    other.start()
    other.join(10)
    assert not other.is_alive()
    assert len(ada.records()) == 1
    for grant in app.grants:
        assert app.grants.revoke(grant.space, to=grant.to)
    assert list(app.grants) == []


def test_who_grants_beside_who_revokes_gets_the_grant(app: Memory) -> None:
    def often(change: Callable[..., object]) -> None:
        for _ in range(25):
            change("team:core", to="user:ada")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(often, 2 * (app.grants.add, app.grants.revoke)))
    told = [change.action for change in app.scoped(team="core").changes(kind="grant")]
    assert told == [("grant", "revoke")[n % 2] for n in range(len(told))][::-1]


@pytest.mark.parametrize("parts", [{"team": "core"}, {"reads": ["team:core"]}])
def test_who_administers_grants_through_a_handle_without_a_right(
    location: str, parts: dict[str, object]
) -> None:
    with Memory(location, user="ada", admin=True, **parts) as admin:  # type: ignore[arg-type]
        admin.scoped(user="", team="core").remember("Deployments need two reviews")
        with pytest.raises(Denied):
            admin.recall("deployments")
        admin.scoped(user="bob").grants.add("user", to="user:eve")
        assert admin.grants.add("team:core", to="user:ada").by == "ada"
        assert [hit.space for hit in admin.recall("deployments")] == ["team:core"]
        assert {one.space for one in admin.grants} == {"team:core", "user:bob"}
        assert admin.grants.revoke("team:core", to="user:ada")


LOOKS: list[Callable[[Scratchpad], object]] = [lambda pad: pad["temp:token"], lambda pad: "temp:token" in pad]
CHANGES: list[Callable[[Scratchpad], object]] = [
    lambda pad: pad.update({"temp:token": "two"}),
    lambda pad: pad.pop("temp:token"),
]


def test_what_is_temporary_needs_the_same_rights(app: Memory) -> None:
    team, ada = app.scoped(team="core"), app.scoped(user="ada", team="core")
    for scratchpad in (team.scratchpad, team.chat("monday").scratchpad):
        scratchpad["temp:token"] = "one"
    places = (ada.scratchpad, ada.chat("monday").scratchpad)
    for scratchpad in places:
        for look in LOOKS:
            with pytest.raises(Denied, match="may not read"):
                look(scratchpad)
    app.grants.add("team:core", to="user:ada")
    for scratchpad in places:
        assert scratchpad["temp:token"] == "one"
        for change in CHANGES:
            with pytest.raises(Denied, match="may not write"):
                change(scratchpad)
    app.grants.add("team:core", to="user:ada", rights="write")
    places[0]["temp:token"] = "two"
    app.grants.revoke("team:core", to="user:ada")
    with pytest.raises(Denied):
        places[0].pop("temp:token")
    assert team.scratchpad["temp:token"] == "two"


READS: dict[str, Callable[[Memory, str], object]] = {
    "get": lambda memory, id: memory.get(id),
    "notes": lambda memory, _: memory.chat("standup").notes(),
    "records": lambda memory, _: memory.records(where={"lang": "de"}),
    "chats": lambda memory, _: memory.chats(where={"lang": "de"}),
    "recall": lambda memory, _: memory.recall("deployment", where={"lang": "de"}),
    "tool": lambda memory, id: {one.name: one for one in memory.tools()}["expand"]({"id": id}).ok,
}


def test_a_right_to_read_is_enough_to_read(app: Memory) -> None:
    team = app.scoped(team="core")
    chat = team.chat("standup", meta={"lang": "de"})
    chat.append(role="user", content="The deployment went well")
    note = chat.remember("The deployment is over", kind="note")
    team.remember([f"Deployment {n}" for n in range(300)], "finding", meta={"lang": "de"})
    app.grants.add("team:core", to="user:ada")
    for name, read in READS.items():
        assert read(app.scoped(user="ada", team="core"), note.id), name
    found = team.get(note.id)
    assert found is not None
    assert found.uses == 1


def test_a_right_to_read_is_enough_for_a_prompt(app: Memory) -> None:
    team = app.scoped(team="core")
    team.remember("Deployments need two reviews", kind="fact", target="env")
    team.chat("standup").append(role="user", content="The release is on Monday.")
    app.grants.add("team:core", to="user:ada")
    reader = app.scoped(user="ada", team="core").chat("standup")
    prompt = reader.prompt(query="When is the release?")
    assert "two reviews" in prompt.system
    assert "The release is on Monday." in str(prompt.messages)
    assert reader.snapshot() is None
    # What the team's own prompts show is frozen by the first of these.
    assert team.chat("standup").prompt().system == reader.prompt().system
    app.grants.revoke("team:core", to="user:ada")
    with pytest.raises(Denied):
        reader.prompt()


def test_who_listens_to_a_space_hears_what_moves_from_it(app: Memory) -> None:
    team = app.scoped(team="core")
    app.grants.add("team:core", to="user:ada", rights="write")
    ada = app.scoped(user="ada", reads=["team:core"])
    heard: list[tuple[str, str]] = []
    team.on("retracted", lambda event: heard.append(("core", event.name)))
    ada.on("retracted", lambda event: heard.append(("ada", event.name)))
    ada.on("learned", lambda event: heard.append(("ada", event.name)))
    ada.grants.move(team.remember("Deployments need two reviews").id, "user")
    assert sorted(heard) == [("ada", "learned"), ("core", "retracted")]


def test_a_user_sees_the_grants_of_no_other(app: Memory) -> None:
    tenants = app, app.scoped(tenant="t"), app.scoped(tenant="t/")
    for tenant in tenants:
        for user in ("a", "a/", "ab"):
            for space in ("user", "project:p", "project:p%2Fq"):
                tenant.scoped(user=user).grants.add(space, to="user:eve")
        tenant.grants.add("tenant", to="user:eve", rights="write")
        tenant.grants.add("team:core", to="user:eve")
    for tenant in tenants:
        assert len(tenant.grants) == 3 * 3 + 2
        for user in ("a", "a/", "ab"):
            found = [grant.space for grant in tenant.scoped(user=user).grants]
            assert found == ["user", "project:p", "project:p%2Fq"]
