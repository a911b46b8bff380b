"""Who reads what, whatever is granted and revoked in between: against a model in plain Python."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from holdfast import Denied, Memory
from soak import cases

USERS = ("ada", "bob", "eve")
PROJECTS = ("", "shop", "site/a")
TEAMS = ("core", "ops")
OWN = st.tuples(st.sampled_from(USERS), st.sampled_from(PROJECTS))
Place = tuple[str, str]  # of a user and a project, or "team" and its name, or "tenant" and nothing


def reference(place: Place, seen_by: str = "") -> str:
    """Name a space, in full or as its owner does."""
    first, name = place
    if first in ("team", "tenant"):
        return f"team:{name}" if first == "team" else "tenant"
    project = f"project:{name.replace('/', '%2F')}" if name else ""
    if first == seen_by:
        return project or "user"
    return f"user:{first}/{project}" if project else f"user:{first}"


PLACES = st.one_of(OWN, st.tuples(st.just("team"), st.sampled_from(TEAMS)), st.just(("tenant", "")))


class Isolation(RuleBasedStateMachine):
    """Facts in spaces, each with a word of its own; rights; and what each user may read."""

    app: Memory

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[Place, set[str]] = {}
        self.rights: dict[tuple[Place, str], str] = {}
        self.count = 0
        # All examples share a database.
        self.all = self.app.scoped(tenant=uuid4().hex)

    def handle(self, place: Place) -> Memory:
        first, name = place
        if first == "team":
            return self.all.scoped(team=name)
        return self.all if first == "tenant" else self.all.scoped(user=first, project=name)

    @rule(place=PLACES)
    def remember(self, place: Place) -> None:
        """Store a fact where it belongs, for the application or its owner."""
        self.count += 1
        text = f"deployment number {self.count} of unique{self.count}"
        self.handle(place).remember(text, merge=False)
        self.facts.setdefault(place, set()).add(text)

    @rule(place=PLACES, user=st.sampled_from(USERS), rights=st.sampled_from(["read", "write"]))
    def grant(self, place: Place, user: str, rights: str) -> None:
        owner = place[0] if place[0] in USERS else ""
        who = self.all.scoped(user=owner) if owner else self.all
        who.grants.add(reference(place), to=f"user:{user}", rights=rights)  # type: ignore[arg-type]
        self.rights[place, user] = rights

    @rule(place=PLACES, user=st.sampled_from(USERS))
    def revoke(self, place: Place, user: str) -> None:
        had = self.rights.pop((place, user), None)
        assert self.all.grants.revoke(reference(place), to=f"user:{user}") == (had is not None)

    def may(self, user: str, place: Place, right: str) -> bool:
        if place[0] == user or (place[0] == "tenant" and right == "read"):
            return True
        return self.rights.get((place, user), "") in ("write", right)

    @rule(own=OWN, others=st.lists(PLACES, max_size=3))
    def recall(self, own: Place, others: list[Place]) -> None:
        user, project = own
        memory = self.all.scoped(user=user, project=project, reads=[reference(one, user) for one in others])
        read = [own, (user, ""), *others, ("tenant", "")]
        if not all(self.may(user, one, "read") for one in read):
            for look in (
                lambda: memory.recall("deployment", limit=100),
                lambda: memory.chat("c").prompt(4_000, "deployment"),
                lambda: memory.chat("c").prompt(4_000),
            ):
                with pytest.raises(Denied):
                    look()
            return
        expected = {text for one in set(read) for text in self.facts.get(one, ())}
        hits = memory.recall("deployment", limit=100)
        assert {hit.text for hit in hits} == expected
        names = {reference(one, user): one for one in read}
        for hit in hits:
            assert hit.text in self.facts[names[hit.space]]
        prompt = memory.chat("c").prompt(100_000)
        assert all(text in prompt.system for text in expected)
        assert prompt.system.count("unique") == len(expected)

    @rule(user=st.sampled_from(USERS), team=st.sampled_from(TEAMS))
    def team_handle(self, user: str, team: str) -> None:
        place, memory = ("team", team), self.all.scoped(user=user, team=team)
        if self.may(user, place, "read"):
            assert {one.text for one in memory.records()} == self.facts.get(place, set())
        else:
            with pytest.raises(Denied):
                memory.records()
        self.count += 1
        text = f"deployment number {self.count} of unique{self.count}"
        if self.may(user, place, "write"):
            memory.remember(text, merge=False)
            self.facts.setdefault(place, set()).add(text)
        else:
            with pytest.raises(Denied):
                memory.remember(text, merge=False)

    @rule(place=PLACES, to=PLACES, user=st.sampled_from(USERS), keep=st.booleans(), data=st.data())
    def carry(self, place: Place, to: Place, user: str, keep: bool, data: st.DataObject) -> None:
        texts = self.facts.get(place, set())
        if not texts or to == place:
            return
        text = data.draw(st.sampled_from(sorted(texts)))
        [record] = [one for one in self.handle(place).records() if one.text == text]
        memory = self.all.scoped(user=user, reads=[reference(place, user)])
        do = memory.grants.copy if keep else memory.grants.move
        if not self.may(user, place, "read" if keep else "write") or not self.may(user, to, "write"):
            with pytest.raises(Denied):
                do(record.id, reference(to, user), by="user")
            return
        if text in self.facts.get(to, ()):
            return
        do(record.id, reference(to, user), by="user")
        if not keep:
            texts.remove(text)
        self.facts.setdefault(to, set()).add(text)

    @invariant()
    def every_space_has_its_own(self) -> None:
        for place, texts in self.facts.items():
            assert {one.text for one in self.handle(place).records()} == texts


@pytest.mark.slow
def test_nobody_reads_or_writes_what_is_not_granted(app: Memory) -> None:
    of_app = type("Isolated", (Isolation,), {"app": app})
    run_state_machine_as_test(
        of_app,
        settings=settings(
            max_examples=cases(10, 45),
            stateful_step_count=20,
            suppress_health_check=list(HealthCheck),
        ),
    )
