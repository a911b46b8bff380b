"""What a hook imports, imported: the processes of hooks in tests are forked from one that has it."""

from holdfast import Memory
from holdfast_cli.hooks import clients, entry, events

__all__ = ["clients", "entry", "events"]

with Memory(":memory:", user="ada") as memory:
    chat = memory.chat("monday")
    chat.append(role="user", content="We keep the baskets of the shop in Redis.")
    memory.remember("The baskets are in Redis.")
    memory.recall("Where are the baskets?")
    chat.prompt(budget=1_000, query="baskets")
    chat.end()
