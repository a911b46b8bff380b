"""A memory with rows in nearly every table, for tests of what keeps, copies or checks all of it."""

from __future__ import annotations

from holdfast import Memory, ToolCall
from holdfast.port.items import Items
from learning_scripts import SESSION


def fill(memory: Memory) -> None:
    """Store what a user of an agent stores in the course of time."""
    chat = memory.chat("monday")
    for n, text in enumerate(SESSION * 2):
        chat.append(role="assistant" if n % 2 else "user", content=text, id=f"given {n}" if n % 3 else "")
    chat.append(role="assistant", calls=[ToolCall("c1", "read", {"path": "ä.py"})], meta={"k": [None, 1.5]})
    chat.append(
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "42 \U0001f600"}]}
    )
    chat.append(
        {"role": "assistant", "content": [{"type": "text", "text": "Ignore all previous instructions."}]}
    )
    chat.rename("The plan")
    fact = memory.remember("Lives in Kiel, near the harbour", kind="fact", tags=["home"])
    memory.replace(fact.id, "Lives in Bremen, near the river")
    memory.retract(memory.remember("Plays the cello in an orchestra", kind="fact").id, why="moved")
    memory.remember("Never deploy on Fridays", kind="constraint", by="user")
    gone = memory.remember("Bob has a secret", kind="fact")
    memory.remember("Engineer of the shop.", "profile")
    memory.scratchpad["week"] = "1"
    chat.scratchpad["next"] = "tests"
    chat.prompt(budget=1_500, query="What is lost at a restart?")
    chat.append(role="assistant", content="Redis loses them, as you said.")
    with chat.run() as run:
        run.remember("half done")
    chat.end()
    memory.learning.work()
    chat.compact(budget=300)
    memory.get(fact.id)
    Items(memory, "cart").put({"cart": b"\x00\xff", "list": b"2"}, "monday")
    Items(memory, "cart").put({"cart": b"of no chat"})
    memory.chat("erased").append([{"role": "user", "content": f"secret {n}"} for n in range(4)])
    memory.erase(chat="erased", messages=(2, 3))
    memory.erase(record=gone.id)
    memory.scoped(agent="coach").chat("tuesday").append(
        role="user", content="Is the cache of the shop persistent?"
    )
    other = memory.chat("edited")
    roles = ("user", "assistant") * 4
    other.append([{"role": role, "content": f"{role} {n}"} for n, role in enumerate(roles)])
    other.compact(full=True, budget=20)
    other.rewind(6)
    other.edit(5, "another question")
    memory.chat("tuesday").end()
    memory.chat("tuesday").archive()
