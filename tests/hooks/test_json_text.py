"""Changes of JSON texts that leave all the rest as it is written."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Conflict
from holdfast_cli.hooks.json_text import JsonText
from tables import each

COMMENTED = """{
    // mine
    "theme" : "dark // no comment", /* a
       "block" */
    "list": [1,
       2, // two
    ],
    "last": {} // the end
}
"""


def test_what_is_there_stays_as_it_is_written() -> None:
    assert JsonText(COMMENTED).root.plain == {"theme": "dark // no comment", "list": [1, 2], "last": {}}
    added = JsonText(COMMENTED).put(["servers", "ours"], {"command": "run"})
    assert added.text == COMMENTED.replace(
        '"last": {} // the end\n',
        '"last": {}, // the end\n    "servers": {\n        "ours": {\n'
        '            "command": "run"\n        }\n    }\n',
    )
    assert added.put(["servers", "ours"], {"command": "run"}).text == added.text
    assert added.without(["servers"]).text == COMMENTED


def test_a_part_is_added_in_the_layout_of_the_others() -> None:
    for text, path, expected in (
        ("[1, 2]", [], "[1, 2, 3]"),
        ("[\n  1, // one\n  2 // two\n]", [], "[\n  1, // one\n  2, // two\n  3\n]"),
        ("[\n  1,\n]", [], "[\n  1,\n  3,\n]"),
        ("[1, ]", [], "[1, 3, ]"),
        ("[]", [], "[\n  3\n]"),
        ("[ // none\n]", [], "[ // none\n  3\n]"),
        ('{\r\n\t"a": []\r\n}', ["a"], '{\r\n\t"a": [\r\n\t\t3\r\n\t]\r\n}'),
        ('\ufeff{"a": [{}]}', ["a"], '\ufeff{"a": [{}, 3]}'),
    ):
        changed = JsonText(text).append(path, 3) if path else JsonText(text)._add(JsonText(text).root, "", 3)
        assert changed.text == expected


def test_a_part_is_removed_with_its_comma() -> None:
    for text, path, expected in (
        ('{"a": 1, "b": 2}', ["b"], '{"a": 1}'),
        ('{"a": 1, "b": 2}', ["a"], '{"b": 2}'),
        ('{"a": 1}', ["a"], "{}"),
        ('{\n  "a": 1 // one\n}', ["a"], "{ // one\n}"),
        ('{\n  "a": 1, // one\n  "b": 2 // two\n}', ["b"], '{\n  "a": 1 // one // two\n}'),
        ('{\n  "a": 1,\n  "b": 2,\n}', ["b"], '{\n  "a": 1,\n}'),
        ('{\n  "a": [1, [2, 3]]\n}', ["a", 1, 0], '{\n  "a": [1, [3]]\n}'),
        ('{"a": 1, "a": 2, "b": 3}', ["a"], '{"a": 1, "b": 3}'),
    ):
        assert JsonText(text).without(path).text == expected  # type: ignore[arg-type]  # names and numbers


NO_JSON = r"""{'a': 1}  {  [  {"a" 1}  {"a": }  {1: 2}  [,]  {"a": 1 "b": 2}  /*  {"a": 1} x  01  "\x"  nul
[1 2]  NaN  -  {"a": 1  "a  /* /"""


@each("text", [*re.split("  |\n", NO_JSON), "[" * 100_000, f"[{'9' * 5_000}]", '{"a": "\n"}'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(Conflict, match="not JSON") as caught:
        JsonText(text)
    assert "hand" in caught.value.todo


@each("text", ['{"a": []}', '{"a": null}', '{"a": "b"}', "[1]", '"text"'])
def test_what_is_no_object_gets_no_member(text: str) -> None:
    with pytest.raises(Conflict, match="no object"):
        JsonText(text).put(["a", "b"], 1)
    with pytest.raises(Conflict, match="no list"):
        JsonText('{"a": {"b": 1}}').append(["a"], 1)


@given(st.text(alphabet='{}[]",:/*\\ \n1a', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        root = JsonText(text).root
    except Conflict:
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
        return
    try:
        assert json.loads(text) == root.plain
    except json.JSONDecodeError:
        assert "/" in text or ",}" in "".join(text.split()) or ",]" in "".join(text.split())
