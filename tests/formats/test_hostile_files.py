"""Files like transcripts with arbitrary values: no crash, nothing lost silently, nothing added twice."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from chats_of_programs import DOCUMENTS
from holdfast import Memory
from holdfast_cli.formats.export import export_chats
from holdfast_cli.formats.importing import import_paths
from soak import cases
from transcripts import chatgpt, claude, codex, gemini, said

KEYS = """type uuid parentUuid sessionId isSidechain agentId isMeta message role content timestamp customTitle
    messages id session_id chat title agent archived answers raw meta calls tool_calls function name arguments
    call_id payload num_turns cwd instructions toolCalls result args thoughts sessionId projectHash
    $rewindTo $set tool_call_id mapping current_node parent children author weight metadata content_type parts
    text recipient create_time attachments at input tool_use_id""".split()
ATOMS: list[object] = [
    *"user assistant tool text tool_use tool_result thinking thoughts x u1 n2 s".split(),
    *("", "\n", "a\x00b", "\ud800", "x" * 600, "2026-01-06T09:15:59Z"),
    *(0, 1, -1, 1e308, 10**400, 1.5, float("nan"), float("inf"), None, True, False),
]
BASES: list[Callable[[random.Random], dict[str, object]]] = [
    lambda rng: claude(
        rng.choice(["user", "assistant"]), f"u{rng.randrange(6)}", f"u{rng.randrange(6)}", "hi"
    ),
    lambda rng: chatgpt(
        [
            (f"n{n}", f"n{rng.randrange(5)}", said(f"n{n}", rng.choice(["user", "tool"]), "hi"))
            for n in range(5)
        ],
        "n3",
    ),
    lambda rng: codex(
        "response_item",
        type=rng.choice(["message", "reasoning", "function_call", "function_call_output", "web_search_call"]),
        role=rng.choice(["user", "assistant"]),
        content=[{"type": "input_text", "text": "hi"}],
        id=f"i{rng.randrange(6)}",
        call_id="c",
        name="ls",
        arguments="{}",
        output="x",
    ),
    lambda rng: codex("event_msg", type="thread_rolled_back", num_turns=rng.randrange(3)),
    lambda rng: gemini(f"g{rng.randrange(6)}", rng.choice(["user", "gemini"]), "hi", calls=rng.randrange(3)),
    lambda rng: {"sessionId": "s", "projectHash": "h", "$rewindTo": f"g{rng.randrange(6)}"},
    lambda _: {"role": "user", "content": "hi", "id": "m"},
    lambda _: {"id": "s", "messages": [{"role": "user", "content": "hi"}]},
    *(lambda _, make=make: make() for make in DOCUMENTS),
]


def anything(rng: random.Random, depth: int = 3) -> object:
    kind = rng.random()
    if depth == 0 or kind < 0.45:
        return rng.choice(ATOMS)
    if kind < 0.65:
        return [anything(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {rng.choice(KEYS): anything(rng, depth - 1) for _ in range(rng.randint(0, 6))}


def mutated(rng: random.Random, value: object) -> object:
    if isinstance(value, dict):
        changed = {key: mutated(rng, inner) for key, inner in value.items()}
        if rng.random() < 0.25:
            changed[rng.choice([*value, *KEYS])] = anything(rng)
        return changed
    if isinstance(value, list):
        return [mutated(rng, inner) for inner in value]
    return value if rng.random() > 0.05 else anything(rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(cases(2, 40)))
def test_anything_anywhere(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    backup = tmp_path / "backup.jsonl"
    added = 0
    for _ in range(60):
        values = [mutated(rng, rng.choice(BASES)(rng)) for _ in range(rng.randint(1, 12))]
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        (folder / "a.jsonl").write_text("\n".join(json.dumps(value) for value in values))
        (folder / "b.json").write_text(json.dumps(values, indent=rng.choice([None, 1])))
        with Memory(":memory:") as memory, Memory(":memory:") as copy:
            added += import_paths(memory, folder).added
            assert import_paths(memory, folder).added == 0
            exported = io.StringIO()
            export_chats(memory, exported)
            if exported.getvalue():
                backup.write_text(exported.getvalue())
                assert not import_paths(copy, backup).skipped
                again = io.StringIO()
                export_chats(copy, again)
                assert sorted(again.getvalue().splitlines()) == sorted(exported.getvalue().splitlines())
    assert added > 100
