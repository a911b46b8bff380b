"""A database that an older version wrote: it opens, proves what can be proved, and answers the same."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from holdfast import HoldfastError, Memory
from holdfast.store import database
from holdfast.store.connect import open_database
from holdfast.store.schema import migrations, split_statements
from stored_texts import erasures_of, text_of

DATA = Path(__file__).parents[1] / "data" / "store"
VERSION = 5  # of the schema that the rows were written with


def answers(memory: Memory) -> dict[str, Any]:
    """Ask for all that a memory tells, in what stays the same from one version to the next."""
    chats = {info.id: memory.chat(info.id) for info in memory.chats(archived=None)}
    return {
        "chats": {
            name: {
                "history": [
                    [
                        m.seq,
                        m.id,
                        m.role,
                        m.content,
                        str(m.at),
                        m.tokens,
                        [str(c) for c in m.calls],
                        m.answers,
                    ]
                    for m in chat.history()
                ],
                "raw": [m.raw for m in chat.history()],
                "counted": [chat.stats().messages, chat.stats().erased, chat.stats().context_tokens],
                "window": [m.seq for m in chat.window(budget=2_000).messages],
                "tree": [[s.id, s.first, s.last, s.depth, s.parent, s.text] for s in chat.tree()],
                "pad": dict(chat.scratchpad),
                "snapshot": chat.snapshot(),
            }
            for name, chat in chats.items()
        },
        "titles": [[info.id, info.title, info.agent] for info in memory.chats(archived=None)],
        "records": [[r.id, r.version, r.kind, r.text, list(r.tags), dict(r.meta)] for r in memory.records()],
        "changes": [
            [c.version, c.action, c.id, c.before, c.after, c.by, c.why] for c in memory.changes() if c.version
        ],
        "then": [[r.id, r.text] for r in memory.at(version=2).records()],
        "profile": text_of(memory.get("profile")),
        "constraints": [r.text for r in memory.records(kind="constraint")],
        "pad": dict(memory.scratchpad),
        "jobs": sorted([job.id, job.status] for job in memory.learning.jobs()),
        "erased": [[e.id, e.what, dict(e.counts), e.digest] for e in erasures_of(memory)],
        "found": [
            memory.recall(query)[0].text
            for query in ("sessions lost at a restart", "table number 14", "where does she live")
        ],
        "shared": [r.text for r in memory.scoped(user="").records()],
    }


@pytest.fixture
def postgres_url(bare_postgres_url: str) -> str:
    """Begin without our tables."""
    return bare_postgres_url


def made_by(location: str, version: int, statements: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the database as an older version of the schema left it."""
    with monkeypatch.context() as patch:
        known = migrations()[:version]
        patch.setattr(database, "migrations", lambda: known)
        patch.setattr(database, "NEWEST", version)
        patch.setattr(database, "schema", lambda: list(chain(*known)))
        opened = open_database(location)
    with opened.writing() as tx:
        for statement in statements:
            tx.all(statement)
    opened.close()


@pytest.fixture
def older(shared_location: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the database as that version left it, but for the index, which is derived."""
    script = (DATA / f"schema_{VERSION}.sql").read_text("utf-8")
    made_by(shared_location, VERSION, split_statements(script), monkeypatch)
    return shared_location


def test_noted_values_of_metadata_go(shared_location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = [
        "INSERT INTO spaces (space, epoch) VALUES ('/ada', 3)",
        "INSERT INTO meta_keys (space, source, key, done) VALUES ('/ada', 'message', 'lang', 7)",
        "INSERT INTO meta_values VALUES ('/ada', 'message', 'lang', CAST('de' AS BYTEA), 7, '')",
    ]
    made_by(shared_location, 20, noted, monkeypatch)
    with Memory(shared_location, user="ada") as memory:
        said = [{"role": "user", "content": "invoice", "meta": {"lang": one}} for one in ("de", "en")]
        memory.chat("a", meta={"vip": True}).append(said)
        assert [hit.seq for hit in memory.recall("invoice", where={"lang": "de", "vip": True})] == [1]
        assert memory.verify().problems == ()
        with pytest.raises(HoldfastError):
            memory._runtime.database.all("SELECT 1 FROM meta_keys")


def test_it_answers_the_same(older: str) -> None:
    expected = json.loads((DATA / f"schema_{VERSION}.json").read_text("utf-8"))
    with Memory(older, tenant="acme", user="ada", admin=True) as memory:
        assert json.loads(json.dumps(answers(memory))) == expected


def test_its_rows_are_unproven_which_is_no_problem(older: str) -> None:
    with Memory(older, tenant="acme", user="ada", admin=True) as memory:
        verified = memory.verify()
        assert (verified.problems, verified.unproven, verified.checked["checksums"]) == ((), 55, 0)
        memory.chat("wednesday").append(role="user", content="And now with a checksum.")
        memory.chat("monday").rename("Sessions")  # a row that is changed is no proof of what it was
        verified = memory.verify()
        assert (verified.problems, verified.unproven, verified.checked["checksums"]) == ((), 55, 2)
