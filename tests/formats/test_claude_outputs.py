"""Outputs that Claude Code keeps beside a session."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tables import each
from transcripts import Json, claude, result, take, use, write_lines

SAVED = "<persisted-output>\nOutput too large (12KB). Full output saved to: {}\n\nPreview:\nrow 0"
LIMIT = (
    "Error: result (61,234 characters) exceeds maximum allowed tokens. Output has been saved to {}.\nRead it."
)
TELLS = "the rest of an output: its file is not beside the session"


def lines_of(output: str) -> list[Json]:
    call, answer = (
        claude("assistant", "t1", "u1", use("c1")),
        claude("user", "r1", "t1", result("c1", output)),
    )
    return [claude("user", "u1", None, "go"), call, answer]


@each("notice", [SAVED, LIMIT])
def test_an_output_beside_the_session_is_read(tmp_path: Path, notice: str) -> None:
    lines = lines_of(notice.format("/home/ada/.claude/projects/-shop/s1/tool-results/c1.txt"))
    output = tmp_path / "s1" / "tool-results" / "c1.txt"
    write_lines(output, ["row 0", "the last row, \u00e9"])
    main = write_lines(tmp_path / "s1.jsonl", lines)
    with zipfile.ZipFile(tmp_path / "sessions.zip", "w") as archive:
        archive.write(main, "shop/s1.jsonl")
        archive.write(output, "shop/s1/tool-results/c1.txt")
    side = write_lines(tmp_path / "s1" / "subagents" / "agent-a.jsonl", lines)
    for log in (main, side, tmp_path / "sessions.zip"):
        taken = take(log)
        assert (taken.contents[-1], taken.left) == ("row 0\nthe last row, \u00e9\n", [])
        assert taken.messages[-1][1].raw == lines[-1]


@each(
    ("output", "left"),
    [
        (SAVED.format("/p/s1/tool-results/gone.txt"), [(3, TELLS)]),
        (SAVED.format("C:\\p\\s1\\tool-results\\link.txt"), [(3, TELLS)]),
        (SAVED.format("/p/s1/tool-results/../../secret.txt"), []),
        # An output that speaks of saved ones is itself.
        ("ls\nOutput has been saved to /p/s1/tool-results/there.txt", []),
    ],
)
def test_an_output_that_is_not_beside_the_session_is_told(
    tmp_path: Path, output: str, left: list[tuple[int, str]]
) -> None:
    write_lines(tmp_path / "p" / "s1" / "tool-results" / "there.txt", ["other"])
    (tmp_path / "secret.txt").write_text("the secret")
    link = tmp_path / "p" / "s1" / "tool-results" / "link.txt"
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "secret.txt")
    taken = take(write_lines(tmp_path / "p" / "s1.jsonl", lines_of(output)))
    assert (taken.contents[-1], taken.left) == (output, left)
