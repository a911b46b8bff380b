"""Session logs by projects: the folder that each client's log names."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from holdfast_cli.hooks.session_logs import project_of_log
from transcripts import claude, codex, gemini, only_source, write_json, write_lines


def test_the_folder_is_read_from_the_log_of_each_client(tmp_path: Path) -> None:
    shop = str(tmp_path / "shop")
    chats = tmp_path / "gemini" / "chats"
    chats.mkdir(parents=True)
    (tmp_path / "gemini" / ".project_root").write_text(shop)
    begin = {"sessionId": "s", "projectHash": sha256(shop.encode()).hexdigest()}
    logs = [
        write_lines(tmp_path / "claude.jsonl", [claude("user", "u", None, "one", cwd=shop)]),
        write_lines(tmp_path / "codex.jsonl", [codex("session_meta", id="s", cwd=shop)]),
        write_lines(chats / "s.jsonl", [begin, gemini("a", "user", "one")]),
        write_json(chats / "t.json", {**begin, "messages": [gemini("a", "user", "one")]}, indent=1),
    ]
    other = write_lines(tmp_path / "talk.jsonl", [{"role": "user", "content": "one", "cwd": shop}])
    assert [project_of_log(only_source(log)) for log in (*logs, other)] == [shop] * 4 + [""]


def test_a_folder_that_the_hash_does_not_prove_is_none(tmp_path: Path) -> None:
    (tmp_path / ".project_root").write_text("/home/ada/shop")
    begin = {"sessionId": "s", "projectHash": "0" * 64}
    logs = [
        write_lines(tmp_path / "chats" / "s.jsonl", [begin, gemini("a", "user", "one")]),
        write_lines(tmp_path / "relative.jsonl", [claude("user", "u", None, "one", cwd="shop")]),
    ]
    assert [project_of_log(only_source(log)) for log in logs] == ["", ""]
