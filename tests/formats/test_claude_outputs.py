"""Outputs that Claude Code keeps beside a session."""

from __future__ import annotations

import zipfile
from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.importing import import_paths
from tables import each
from transcripts import claude, contents, read, result, skips, use, write_lines

U1 = claude("user", "u1", None, "go")
A1 = claude("assistant", "a1", "u1", "I will.")
T1, R1 = claude("assistant", "t1", "a1", use("c1")), claude("user", "r1", "t1", result("c1"))
SAVED = "<persisted-output>\nOutput too large (12KB). Full output saved to: {}\n\nPreview:\nrow 0"
LIMIT = (
    "Error: result (61,234 characters) exceeds maximum allowed tokens. Output has been saved to {}.\nRead it."
)


@each("notice", [SAVED, LIMIT])
def test_an_output_beside_the_session_is_read(tmp_path: Path, notice: str) -> None:
    path = "/home/ada/.claude/projects/-shop/s1/tool-results/c1.txt"
    lines = [U1, A1, T1, claude("user", "r1", "t1", result("c1", notice.format(path)))]
    write_lines(tmp_path / "s1" / "tool-results" / "c1.txt", ["row 0", "the last row, \u00e9"])
    main = write_lines(tmp_path / "s1.jsonl", lines)
    side = write_lines(tmp_path / "s1" / "subagents" / "agent-a.jsonl", lines)
    for log in (main, side):
        items = read(log)
        assert contents(items)[-1] == "row 0\nthe last row, \u00e9\n"
        assert not skips(items)
        (found,) = [one for one in items if isinstance(one, ImportedMessage) and one.message.answers]
        assert found.message.raw == lines[3]


def test_an_output_beside_a_session_in_a_zip_is_read(tmp_path: Path) -> None:
    notice = SAVED.format("/home/ada/.claude/projects/-shop/s1/tool-results/c1.txt")
    lines = [U1, A1, T1, claude("user", "r1", "t1", result("c1", notice))]
    log = write_lines(tmp_path / "s1.jsonl", lines)
    with zipfile.ZipFile(tmp_path / "sessions.zip", "w") as archive:
        archive.write(log, "shop/s1.jsonl")
        archive.writestr("shop/s1/tool-results/c1.txt", "row 0\nthe last row")
    memory = Memory(":memory:", user="ada")
    report = import_paths(memory, tmp_path / "sessions.zip")
    assert (report.added, report.skipped) == (4, ())
    assert memory.chat("s1").history()[-1].content == "row 0\nthe last row"


@each(
    "path",
    [
        "/p/s1/tool-results/gone.txt",
        "/p/s1/tool-results/../../secret.txt",
        "C:\\p\\s1\\tool-results\\link.txt",
    ],
)
def test_an_output_that_is_not_beside_the_session_is_told(tmp_path: Path, path: str) -> None:
    (tmp_path / "p" / "s1" / "tool-results").mkdir(parents=True, exist_ok=True)
    (tmp_path / "secret.txt").write_text("the secret")
    link = tmp_path / "p" / "s1" / "tool-results" / "link.txt"
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "secret.txt")
    notice = SAVED.format(path)
    lines = [U1, A1, T1, claude("user", "r1", "t1", result("c1", notice))]
    items = read(write_lines(tmp_path / "p" / "s1.jsonl", lines))
    assert contents(items)[-1] == notice
    left = [(4, "the rest of an output: its file is not beside the session")]
    assert skips(items) == (left if "results/.." not in path else [])


def test_an_output_that_speaks_of_saved_ones_is_itself(tmp_path: Path) -> None:
    write_lines(tmp_path / "s1" / "tool-results" / "c1.txt", ["other"])
    listing = "ls\nOutput has been saved to /p/s1/tool-results/c1.txt"
    lines = [U1, A1, T1, claude("user", "r1", "t1", result("c1", listing))]
    assert contents(read(write_lines(tmp_path / "s1.jsonl", lines)))[-1] == listing
