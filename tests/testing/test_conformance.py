"""The suite that ships in the package, run on everything that is a provider here."""

from __future__ import annotations

from unittest import SkipTest
from uuid import uuid4

import pytest

from holdfast import Memory
from holdfast.contract import Provider, capabilities
from holdfast.providers.tracing import Operation, traced
from holdfast.testing import Conformance, MinimalProvider


class TestMemory(Conformance):
    @pytest.fixture(autouse=True)
    def _on(self, location: str) -> None:
        self.location = location

    def make(self) -> Provider:
        # What survives a power cut is not asked here, and waiting for the disk would be half of the time.
        return Memory(self.location, tenant=uuid4().hex, user="ada", admin=True, durability="normal")

    def reopen(self, provider: Provider) -> Provider:
        if self.location == ":memory:":
            raise SkipTest("What is in memory does not last.")
        assert isinstance(provider, Memory)
        return Memory(
            self.location, tenant=provider.scope.tenant, user="ada", admin=True, durability="normal"
        )


class TestTracedMemory(Conformance):
    def make(self) -> Provider:
        return traced(Memory(":memory:", user="ada", admin=True), on_event=Observed())


class Observed:
    """Look at each operation, with whatever it tells."""

    def __call__(self, operation: Operation) -> None:
        assert operation.name in repr(operation)


def test_the_minimal_provider_claims_nothing_but_the_core() -> None:
    assert capabilities(MinimalProvider()) == set()
