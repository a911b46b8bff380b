"""The option --where: filters on metadata on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from cli_runs import Cli, with_database

from holdfast import Memory
from holdfast_cli.commands.where_option import read_where
from tables import each

cli = pytest.fixture(with_database)


@each(
    ("text", "expected"),
    [
        ("stars>=4", {"stars": {"$gte": 4}}),
        (" stars <= 4.5 ", {"stars": {"$lte": 4.5}}),
        ("topic=the garden=green", {"topic": {"$eq": "the garden=green"}}),
        ('tags=["a", "b=c"]', {"tags": {"$eq": ["a", "b=c"]}}),
        ("lang in de, en", {"lang": {"$in": ["de", "en"]}}),
        ('name=">4"', {"name": {"$eq": ">4"}}),
        ("lang not  in de", {"lang": {"$nin": ["de"]}}),
        ('name in "Doe, Jane", ada ,"a\\"b,c", ""', {"name": {"$in": ["Doe, Jane", "ada", 'a"b,c', ""]}}),
        ('"first name" in ada,bob', {"first name": {"$in": ["ada", "bob"]}}),
        ('!"caf\\u00e9 名"', {"café 名": {"$exists": False}}),
        ("lang", {"lang": {"$exists": True}}),
        ("!lang", {"lang": {"$exists": False}}),
        ('{"$or": [{"a": 1}, {"b": {"$in": ["x"]}}]}', {"$or": [{"a": 1}, {"b": {"$in": ["x"]}}]}),
    ],
)
def test_what_a_filter_says(text: str, expected: dict[str, Any]) -> None:
    assert read_where(text).where == expected


NONE = (
    "", " ", "=de", ">=4", "{", '{"$nor": []}', "stars>null", "$gte=4", "a b", "stars=>4", "stars~4", "a,b",
    "stars>=4 and lang=de", "stars>=4,lang=de", "lang=de OR who.name!=ada", "stars>=4 && lang = de",
    "n in ,", "n in a,,b", "n in a,", "n=1e999", "n=" + "9" * 5_000, "n in 1," + "9" * 5_000,
    '"a', '"\\x"=1', '""=1', '"a\\u0000"=1', '"$gte"=4',
)  # fmt: skip


@each("text", NONE)
def test_what_is_no_filter(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        read_where(text)


@each(
    "text",
    [
        "a" * 200_000, " " * 200_000 + "=", "a not" + " " * 200_000, "!" * 200_000,
        "a=b c" + ",a" * 100_000 + ",b=", '"\\' * 100_000,
    ],
)  # fmt: skip
def test_long_input_is_read_in_linear_time(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        read_where(text)


def test_recall_records_and_chats_by_metadata(cli: Cli) -> None:
    with Memory(cli.db) as memory:
        chat = memory.chat("a", meta={"customer": "acme"})
        chat.append([{"role": "user", "content": f"invoice {n}", "meta": {"stars": n}} for n in range(5)])
        memory.chat("b").append(role="user", content="invoice of b")
        memory.remember("The invoice is late", meta={"stars": 9})
    hits = cli.json("recall", "invoice", "--where", "stars>=3")["hits"]
    assert sorted(hit["text"] for hit in hits) == ["The invoice is late", "invoice 3", "invoice 4"]
    hits = cli.json("recall", "invoice", "--where", "stars>=3", "--where", "customer=acme")["hits"]
    assert sorted(hit["text"] for hit in hits) == ["invoice 3", "invoice 4"]
    assert [one["id"] for one in cli.json("chats", "--where", "customer=acme")["chats"]] == ["a"]
    assert len(cli.json("records", "--where", json.dumps({"stars": {"$lt": 10}}))["records"]) == 1
    assert cli.json("records", "--where", "stars<9")["records"] == []
    assert "where: stars >= 3" in cli.text("why", "invoice", "a#1", "--where", "stars>=3")
