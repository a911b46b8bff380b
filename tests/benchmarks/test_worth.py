from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.worth import LABELS, half_of, read_labelled, split
from holdfast.errors import InvalidInput


def texts(text: str) -> list[str]:
    return [one.text for one in split(text)]


def test_sentences_list_items_and_rows_are_statements() -> None:
    prose = "Use two queues, e.g. per region. it works... mostly\n\n"
    assert texts(prose + "- **1. First**\n- [ ] Second!\n| a. B | c |\n|--|--|") == [
        "Use two queues, e.g. per region.",
        "it works... mostly",
        "**1. First**",
        "Second!",
        "a. B | c",
    ]


def test_code_thoughts_and_tools_are_not_said() -> None:
    said = "Look:\n```py\nx. Y\n```\nDone.\n<details>\n"
    assert texts(said + "<tool-use name='Read'>\nfile. Text\n</tool-use>\nreport") == ["Look:", "Done."]
    assert texts("<think>I wonder.</think>") == []


def test_chinese_sentences_end_without_a_blank() -> None:
    assert texts("我们用两个队列。好！") == ["我们用两个队列。", "好！"]


@given(st.text(alphabet=st.sampled_from(list("aB1 .!?`\n-*|<>/ \u3002\u2028~\t")), max_size=60))
def test_statements_stand_where_they_say_and_do_not_overlap(text: str) -> None:
    end = 0
    for one in split(text):
        assert text[one.start : one.end] == one.text
        assert end <= one.start
        end = one.end


def test_labelled_sessions_are_those_of_the_data(shared_data: Path) -> None:
    labelled = read_labelled(shared_data)
    assert {session.source for session, _ in labelled} == {"agent", "tau", "locomo", "realmem"}
    for session, judged in labelled:
        assert judged.half == half_of(session.source, session.id)
        found = [(one.position, it.start, it.end) for one in session.messages for it in one.statements()]
        assert found == list(judged.statements)


def test_other_words_than_those_labelled_are_refused(shared_data: Path, tmp_path: Path) -> None:
    row = json.loads((LABELS / "sessions.jsonl").read_text("utf-8").splitlines()[0])
    (tmp_path / "sessions.jsonl").write_text(json.dumps(row | {"hash": "0"}), "utf-8")
    with pytest.raises(InvalidInput, match="not the one that was labelled"):
        read_labelled(shared_data, tmp_path)
