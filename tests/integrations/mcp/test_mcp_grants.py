"""Grants over MCP: a right that is revoked ends at once in servers that run."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from mcp import Client

from holdfast import Memory
from mcp_peers import Served, client, data, http_client, over_stdio, text, wait

OPTIONS = ("--project", "shop", "--reads", "team:core")


async def asked(client: Client, app: Memory, record: str) -> None:
    async def told(id: str) -> tuple[bool, str]:
        result = await client.call_tool("expand", {"id": id})
        return bool(result.is_error), text(result).replace(id, "ID")

    unknown = await told("team:ops|rec_1")
    assert unknown[0]
    assert await told(f"team:core|{record}") == await told(record) == unknown
    app.grants.add("team:core", to="user:ada")
    [hit] = data(await client.call_tool("recall", {"query": "deployments"}))["hits"]
    assert (hit["id"], hit["space"]) == (f"team:core|{record}", "team:core")
    where = {"query": "deployments", "where": '{"first name": {"$in": ["Doe, Jane"]}}'}
    assert len(data(await client.call_tool("recall", where))["hits"]) == 1
    assert not (await told(record))[0]
    app.grants.revoke("team:core", to="user:ada")
    refused = await client.call_tool("recall", {"query": "deployments"})
    assert refused.is_error
    assert "may not read" in text(refused)
    assert await told(f"team:core|{record}") == await told(record) == unknown


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_server_reads_what_is_granted_at_the_time(shared_location: str, transport: str) -> None:
    async def main(app: Memory, record: str) -> None:
        async with AsyncExitStack() as stack:
            if transport == "stdio":
                opened = await stack.enter_async_context(
                    client(over_stdio(shared_location, *OPTIONS), "auto")
                )
            else:
                served = stack.enter_context(Served(shared_location, *OPTIONS))
                opened = await stack.enter_async_context(http_client(served.url, served.token, "auto"))
            await asked(opened, app, record)

    with Memory(shared_location) as app:
        team = app.scoped(team="core")
        stored = team.remember("Deployments need two reviews", meta={"first name": "Doe, Jane"})
        wait(main(app, stored.id))
