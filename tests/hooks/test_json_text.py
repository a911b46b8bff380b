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
