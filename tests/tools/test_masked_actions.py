"""What a provider of another kind holds is masked as well, where an agent is shown it."""

from __future__ import annotations

from fake_provider import FakeProvider
from holdfast import Message
from holdfast.tools.actions import Actions

KEY = "AKIAQ3EGRGB2M4XPIX5T"


SAID = f"The deploy user of the staging cluster has the key {KEY}, please use it."


QUERY = "deploy user of the staging cluster"


def test_what_a_provider_of_another_kind_holds_is_masked_as_well() -> None:
    provider = FakeProvider()
    provider.chat("monday").append([Message("user", SAID)])
    actions = Actions(provider)
    for seen in (actions.recall(QUERY), actions.expand("monday#1"), actions.search_sessions(QUERY)):
        assert "staging" in repr(seen)
        assert KEY not in repr(seen)
