"""Sessions of Claude Code whose lines are in another order than they were said."""

from __future__ import annotations

from pathlib import Path
from random import Random

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from soak import cases
from tables import each
from transcripts import claude, result, take, use, write_lines

LEFT = "on a branch that was left: its prompt was rewound and asked anew"
TALK = [
    claude(kind, uuid, parent, content, timestamp=f"2026-03-01T10:0{minute}:00.000Z")
    for minute, (kind, uuid, parent, content) in enumerate(
        [
            ("user", "u1", None, "go"),
            ("assistant", "t1", "u1", [*use("c1"), *use("c2")]),
            ("user", "r2", "t1", result("c2", "two")),
            ("user", "r1", "r2", result("c1", "one")),
            ("assistant", "a1", "r1", "Done."),
            ("user", "u2", None, "wrong"),
            ("user", "u3", "a1", "and now?"),
            ("assistant", "a3", "u3", "Bye."),
        ]
    )
]


@each("seed", [-1, *range(cases(6, 200))])
def test_lines_in_another_order_are_sorted_by_what_they_follow_and_time(tmp_path: Path, seed: int) -> None:
    rows = [row | {"parentUuid": "a1"} if row["uuid"] == "u2" else row for row in TALK]
    for talk, left in ((TALK, []), (rows, [LEFT])):
        lines = talk[::-1] if seed < 0 else Random(seed).sample(talk, len(talk))
        taken = take(write_lines(tmp_path / "s1.jsonl", lines))
        assert taken.ids == [row["uuid"] for row in talk if not (left and row["uuid"] == "u2")]
        assert [reason for _, reason in taken.left] == left


def test_of_lines_that_follow_none_the_time_decides_and_then_the_file(tmp_path: Path) -> None:
    at = [{"timestamp": f"2026-03-01T10:0{minute}:00+00:00"} for minute in (3, 1, 2, 2, 1)]
    lines = [claude("user", f"u{n}", None, f"said {n}") | time for n, time in enumerate(at)]
    assert take(write_lines(tmp_path / "s1.jsonl", lines)).ids == ["u1", "u4", "u2", "u3", "u0"]
    for line in lines:
        del line["timestamp"]
    assert take(write_lines(tmp_path / "s1.jsonl", lines)).ids == ["u0", "u1", "u2", "u3", "u4"]


def test_the_head_of_a_session_may_come_after_its_tail(quick: Memory, tmp_path: Path) -> None:
    for rows, lost in ((TALK[2:], 2), (TALK, 0)):
        report = import_paths(quick, write_lines(tmp_path / "s1.jsonl", rows))
        assert sum(one.count for one in report.skipped if "whose call is neither" in one.reason) == lost
        assert quick.verify().ok
    assert [one.id for one in quick.chat("s1").history()] == [row["uuid"] for row in TALK[2:] + TALK[:2]]
