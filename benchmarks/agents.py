"""`python -m benchmarks agents`: what a memory costs an agent: the MCP server, recall, tools, a session.

What the tools take is counted as models are given them: names, descriptions and schemas.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from benchmarks.clock import Cost, cost_of, each, middle
from benchmarks.measurement import (
    PER_CHAT,
    Bar,
    Measurement,
    at_most,
    figures,
    fill,
    measured,
    run_parts,
    table,
)
from benchmarks.report import Report, Table
from benchmarks.servers import LIMIT, USER, WITH_SESSION, WITHOUT, AgentsLab, AgentsPlan, HttpServer, Server
from benchmarks.words import Words
from holdfast.llm import event_loop
from holdfast.memory import Memory
from holdfast.text.tokens import estimate_tokens
from holdfast.tools.exports import openai_responses

_LEAST = "import mcp.server.mcpserver"  # what every server in Python takes


# The measurements -------------------------------------------------------------------------------------------


def starting(lab: AgentsLab) -> Iterator[Measurement]:
    """Start the server until it has listed its tools, in turns with Python that loads no more than the SDK.

    It waits for nothing: where the wall time is longer than the CPU time, others were busy.
    """
    lab.progress("starting servers")
    least, ours = [], []
    for number in range(lab.plan.starts + 1):
        costs = _imported(lab), _started(lab)
        if number:  # what is compiled first is not compiled again
            least.append(costs[0])
            ours.append(costs[1])
    cost = middle(ours)
    yield measured(
        "`holdfast mcp`, from its start until it has told its tools",
        cost,
        against="Python that imports the SDK",
        theirs=middle(least),
        bar=at_most(cost.cpu, 1_000, "ms"),
    )


def _started(lab: AgentsLab) -> Cost:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with Server(lab) as server:
        server.begin()
        wall = time.perf_counter() - start
    return Cost(_cpu_since(before), wall * 1e3)


def _imported(lab: AgentsLab) -> Cost:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", _LEAST], check=True, env=lab.environment())  # noqa: S603 - as above
    wall = time.perf_counter() - start
    return Cost(_cpu_since(before), wall * 1e3)


def _cpu_since(before: resource.struct_rusage) -> float:
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def recalling(lab: AgentsLab) -> Iterator[Measurement]:
    """Recall through standard input and output, and directly, in turns."""
    lab.progress("recalling through a server")
    with Server(lab) as server:
        yield from _recalled(lab, {"through stdio": server}, most=5)


def calling(lab: AgentsLab) -> Iterator[Measurement]:
    """Recall over HTTP in both eras of the protocol, and directly, in turns."""
    lab.progress("recalling over HTTP")
    with HttpServer(lab, WITH_SESSION) as with_session, HttpServer(lab, WITHOUT) as without:
        servers = {
            f"over HTTP, protocol {WITH_SESSION},": with_session,
            f"over HTTP, protocol {WITHOUT},": without,
        }
        yield from _recalled(lab, servers)


def _recalled(
    lab: AgentsLab, servers: Mapping[str, Server], most: float | None = None
) -> Iterator[Measurement]:
    """Recall through servers and directly; `most` is how many milliseconds more were asked for, if any."""
    questions = lab.words.questions(lab.plan.questions)
    with Memory(lab.store, user=USER) as memory:

        def directly(question: str) -> object:
            return memory.recall(question, limit=LIMIT)

        first = {}
        for how, server in servers.items():
            server.begin()
            first[how] = cost_of(partial(server.recall, questions[0]))
        contenders = [directly, *(server.recall for server in servers.values())]
        for contender in contenders:
            for question in questions:
                contender(question)
        direct, *through = map(middle, each(contenders, questions, lab.plan.repeats))
    among = f"among {lab.plan.messages:,} messages, CPU of the client"
    for how, ours in zip(servers, through, strict=True):
        yield measured(
            f"recall {how} {among}",
            ours,
            against="the direct call",
            theirs=direct,
            bar=None if most is None else Bar(f"≤ {most:g} ms more", ours.wall - direct.wall <= most),
        )
        yield measured(f"first recall of a server {how} {among}", first[how])


def describing(lab: AgentsLab) -> Iterator[Measurement]:
    """Count the tokens of tools, as models are given them."""
    lab.progress("counting the tokens of tools")
    with Server(lab) as server:
        told = server.begin()
    lab.tools["of the MCP server"] = [
        {"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}
        for tool in told
    ]
    with Memory(lab.store, user=USER) as memory:
        lab.tools["of `Memory.tools`"] = [*openai_responses(memory.tools("chat-0"))]
        lab.tools["of `Memory.tools`, in one"] = [*openai_responses(memory.tools("chat-0", style="single"))]
    for whose, tools in lab.tools.items():
        tokens = sum(map(_tokens, tools))
        bar = at_most(tokens, 1_500, "tokens")
        yield Measurement(f"tools {whose}, {len(tools)}", tokens, "tokens", bar=bar.text, ok=bar.ok)
    yield Measurement("all that the MCP server tells of its tools", sum(map(_tokens, told)), "tokens")


def popping(lab: AgentsLab) -> Iterator[Measurement]:
    """Take items of a session of the OpenAI Agents SDK back, the first and those after many others."""
    # Says what is missing, to who measures it.
    from holdfast.integrations.openai_agents import HoldfastSession

    lab.progress("taking items of a session back")
    few, count = lab.plan.questions, lab.plan.popped
    items = [{"role": "user", "content": text} for text in lab.words.messages(count + 2 * few)]
    with Memory(lab.store.with_name("session.db"), durability="normal") as memory:
        session = HoldfastSession(memory, "long")
        event_loop.run(lambda: session.add_items(cast("Any", items)))

        def pop() -> object:
            return event_loop.run(session.pop_item)

        first = [cost_of(pop) for _ in range(few)]
        for _ in range(count - few):
            pop()
        later = [cost_of(pop) for _ in range(few)]
    ours, theirs = middle(later), middle(first)
    yield measured(
        f"`pop_item` of a session, after {count:,} others",
        ours,
        against="the first ones",
        theirs=theirs,
        ratio=ours.cpu / theirs.cpu,
        ratio_of="× the CPU time",
        bar=Bar("≤ 1.5 times", ours.cpu <= 1.5 * theirs.cpu),
    )


def _tokens(value: object) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


# The whole --------------------------------------------------------------------------------------------------

MEASUREMENTS: dict[str, Callable[[AgentsLab], Iterator[Measurement]]] = {
    "start": starting,
    "recall": recalling,
    "http": calling,
    "tools": describing,
    "pop": popping,
}
"""All that can be measured, by the names that `only` takes."""


def run(
    *,
    only: Sequence[str] = (),
    folder: Path | None = None,
    plan: AgentsPlan | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure, in less than a minute.

    Args:
        only: names of `MEASUREMENTS`; all when empty.
        folder: where the database is made that is measured, and removed again.
        plan: how much is measured.
        progress: is told what is being done.

    Raises:
        MissingExtra: there is no server to measure.
        Unavailable: the server does not start, or does not answer.

    """
    import_module("holdfast.integrations.mcp.server")  # it says what is missing, before anything is measured
    plan = plan or AgentsPlan()
    with TemporaryDirectory(prefix="holdfast-bench-", dir=folder) as place:
        lab = AgentsLab(plan, Path(place) / "memory.db", Words(), progress)
        progress(f"storing {plan.messages:,} messages")
        with Memory(lab.store, user=USER, durability="normal") as memory:
            fill(memory, lab.words, plan.messages, PER_CHAT)
            memory.recall("index everything now", limit=1)
        done = run_parts(MEASUREMENTS, lab, only)
    tables = [table("In the hands of an agent", done)]
    tables += [_each_tool(whose, tools) for whose, tools in lab.tools.items() if len(tools) > 1]
    tokens = {
        whose: {str(tool["name"]): _tokens(tool) for tool in tools} for whose, tools in lab.tools.items()
    }
    return Report({"messages": plan.messages, "tools": tokens, **figures(done)}, tuple(tables))


def _each_tool(whose: str, tools: Sequence[Mapping[str, object]]) -> Table:
    rows = (
        (
            str(tool["name"]),
            f"{_tokens(tool['description']):,}",
            f"{_tokens(tool['parameters']):,}",
            f"{_tokens(tool):,}",
        )
        for tool in sorted(tools, key=_tokens, reverse=True)
    )
    return Table(f"Tokens of the tools {whose}", ("tool", "description", "schema", "all"), tuple(rows))
