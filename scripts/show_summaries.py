# ruff: noqa: INP001, T201 - a script, not a package; it prints what it writes
"""Print summaries of the demo's sessions side by side: by what was said alone, as work sessions, by LexRank.

    pip install '.[bench]'
    PYTHONPATH=src:. python scripts/show_summaries.py > summaries.md

Those of what was said alone are what Holdfast wrote before it told work sessions from others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.keeping import filled, lex_rank
from holdfast.compaction.extract import extract
from holdfast.compaction.sentence_scoring import history
from holdfast.compaction.work_steps import work_passages
from holdfast.messages.passages import passages
from holdfast.text.tokens import estimate_tokens
from holdfast.types import Message
from holdfast_cli.demo import sessions
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.sources import SourceFile, sources

SHARES = {"a quarter": 4, "an eighth": 8}


def read() -> dict[str, list[Message]]:
    """Return the messages of each session of the demo, numbered."""
    found: dict[str, list[Message]] = {}
    with sessions() as path:
        for source in sources(path):
            for item in source.read() if isinstance(source, SourceFile) else ():
                if isinstance(item, ImportedMessage):
                    said = found.setdefault(item.chat.id, [])
                    said.append(replace(item.message, seq=len(said) + 1))
    return found


def summaries(messages: list[Message], target: int) -> Iterator[tuple[str, str]]:
    """Yield the three summaries of a session in as many tokens, each with its name."""
    said = passages(messages)
    work = work_passages(messages)
    units = history(said, trimmed=False).units
    yield "Before", extract(said, target)
    yield "Now", extract(work, target) if work else "The same: no tool was used, so it is no work session."
    yield "LexRank", filled(lex_rank(units), units, said, target)


def main() -> None:
    """Print each session in a quarter of its tokens, and work sessions in an eighth as well."""
    for name, messages in read().items():
        size = sum(estimate_tokens(one.text) for one in passages(messages))
        for share, part in SHARES.items():
            if part == SHARES["a quarter"] or work_passages(messages):
                print(f"\n### {name}: {size // part} of {size} tokens ({share})")
                for system, text in summaries(messages, size // part):
                    print(f"\n{system}:\n\n```text\n{text}\n```")


if __name__ == "__main__":
    main()
