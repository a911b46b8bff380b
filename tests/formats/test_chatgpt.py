from __future__ import annotations

import json
import zipfile
from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.importing import import_paths
from transcripts import Json, chatgpt, contents, messages, read, said, skips, write_json

HELLO: list[tuple[str, str | None, Json | None]] = [
    ("root", None, None),
    ("u1", "root", said("u1", "user", "Hello", create_time=1700000001.25)),
    ("a1", "u1", said("a1", "assistant", "Hi!", create_time=1700000002)),
]


def test_the_thread_runs_from_the_current_node_to_the_root(tmp_path: Path) -> None:
    conversation = chatgpt(
        [*HELLO, ("u2", "a1", said("u2", "user", "old")), ("u3", "a1", said("u3", "user", "edited"))], "u3"
    )
    items = read(write_json(tmp_path / "conversations.json", [conversation]))
    assert messages(items) == [("c1", "user", "Hello"), ("c1", "assistant", "Hi!"), ("c1", "user", "edited")]
    assert skips(items) == [(1, "on a branch that was left: the prompt was edited or the answer made anew")]
    first = items[0]
    assert isinstance(first, ImportedMessage)
    assert first.message.raw == HELLO[1][2]
    assert first.message.id == "u1"
    assert str(first.message.at) == "2023-11-14 22:13:21.250000+00:00"
    assert first.chat.title == "A title"


def test_without_a_current_node_the_newest_leaf_counts(tmp_path: Path) -> None:
    nodes = [
        *HELLO,
        ("new", "a1", said("new", "user", "newer", create_time=1700000009)),
        ("old", "a1", said("old", "user", "older", create_time=1700000008)),
    ]
    for current in (None, "gone"):
        items = read(write_json(tmp_path / "conversations.json", [chatgpt(nodes, current)]))
        assert contents(items) == ["Hello", "Hi!", "newer"]


def test_parents_are_found_through_children_when_they_are_not_named(tmp_path: Path) -> None:
    conversation = chatgpt(HELLO, None)
    for node in conversation["mapping"].values():
        del node["parent"]
    assert contents(read(write_json(tmp_path / "conversations.json", [conversation]))) == ["Hello", "Hi!"]


def test_hidden_empty_and_settings_messages_are_left_out(tmp_path: Path) -> None:
    settings = {
        "content_type": "user_editable_context",
        "user_profile": "Ada",
        "user_instructions": "Be brief",
    }
    nodes: list[tuple[str, str | None, Json | None]] = [
        ("root", None, None),
        ("s1", "root", said("s1", "system", "")),
        ("s2", "s1", said("s2", "user", settings)),
        ("s3", "s2", said("s3", "system", "Original custom instructions no longer available", weight=0)),
        ("s4", "s3", said("s4", "system", "secret", metadata={"is_visually_hidden_from_conversation": True})),
        ("u1", "s4", said("u1", "user", "Hello")),
    ]
    items = read(write_json(tmp_path / "conversations.json", [chatgpt(nodes, "u1")]))
    assert contents(items) == ["Hello"]
    assert [reason for _, reason in skips(items)] == [
        "empty",
        "settings of the account, not conversation",
        "hidden in ChatGPT",
        "hidden in ChatGPT",
    ]


def test_every_kind_of_content_becomes_text(tmp_path: Path) -> None:
    image = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-abc",
        "metadata": {"dalle": {"prompt": "a red fox"}},
    }
    kinds: list[tuple[object, str]] = [
        ({"content_type": "text", "parts": ["a", "", "b"]}, "a\nb"),
        ({"content_type": "multimodal_text", "parts": [image, "look"]}, "[image: a red fox]\nlook"),
        ({"content_type": "multimodal_text", "parts": [{**image, "metadata": None}]}, "[image: file-abc]"),
        (
            {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "audio_transcription", "text": "spoken"}],
            },
            "spoken",
        ),
        (
            {"content_type": "multimodal_text", "parts": [{"content_type": "audio_asset_pointer"}]},
            "[audio_asset_pointer]",
        ),
        ({"content_type": "code", "language": "python", "text": "1+1"}, "1+1"),
        ({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}, "[reasoning]"),
        ({"content_type": "reasoning_recap", "content": "Thought for 5s"}, "[reasoning]"),
        (
            {"content_type": "tether_quote", "title": "Page", "text": "quoted", "url": "https://e.org"},
            "Page\nquoted",
        ),
        ({"content_type": "tether_browsing_display", "result": "results", "summary": ""}, "results"),
        ({"content_type": "system_error", "name": "Error", "text": "failed"}, "Error\nfailed"),
        ({"content_type": "hologram", "beam": [1]}, "[hologram]"),
        ({"content_type": "hologram", "parts": []}, "[hologram]"),
        ({"content_type": "hologram", "parts": [7, None, {}, {"text": 3}]}, "[part]\n[part]"),
        ("just text", "just text"),
    ]
    nodes: list[tuple[str, str | None, Json | None]] = [
        (f"n{i}", f"n{i - 1}" if i else None, said(f"n{i}", "assistant", content))
        for i, (content, _) in enumerate(kinds)
    ]
    assert contents(read(write_json(tmp_path / "x.json", [chatgpt(nodes, f"n{len(nodes) - 1}")]))) == [
        text for _, text in kinds
    ]


def test_attachments_are_named(tmp_path: Path) -> None:
    message = said("u1", "user", "see", metadata={"attachments": [{"name": "report.pdf"}, {"id": 1}, "x"]})
    items = read(write_json(tmp_path / "x.json", [chatgpt([("u1", None, message)], "u1")]))
    assert contents(items) == ["see\n[file: report.pdf]"]


def test_messages_to_tools_are_calls_and_those_of_tools_their_results(tmp_path: Path) -> None:
    code = {"content_type": "code", "text": "print(2)"}
    output = {"content_type": "execution_output", "text": "2"}
    tool = {"role": "tool", "name": "python"}
    nodes: list[tuple[str, str | None, Json | None]] = [
        ("t0", None, said("t0", "tool", "a file", author={"role": "tool", "name": "file_search"})),
        ("u1", "t0", said("u1", "user", "two?")),
        ("a1", "u1", said("a1", "assistant", code, recipient="python")),
        ("t1", "a1", said("t1", "tool", output, author=tool)),
        ("t2", "t1", said("t2", "tool", {"content_type": "execution_output", "text": ""}, author=tool)),
        (
            "a2",
            "t2",
            said("a2", "assistant", {"content_type": "code", "text": '{"q": "x"}'}, recipient="web.run"),
        ),
        ("t3", "a2", said("t3", "tool", "found", author={"role": "tool", "name": "web"})),
        ("u2", "t3", said("u2", "user", "thanks")),
        ("t4", "u2", said("t4", "tool", "late", author={"role": "tool", "name": "web"})),
    ]
    with Memory(":memory:") as memory:
        import_paths(memory, write_json(tmp_path / "x.json", [chatgpt(nodes, "t4")]))
        stored = memory.chat("c1").history()
    assert [(m.role, m.content, m.answers) for m in stored] == [
        ("tool", "a file", ()),
        ("user", "two?", ()),
        ("assistant", "", ()),
        ("tool", "2", ("a1",)),
        ("tool", "", ("a1",)),
        ("assistant", "", ()),
        ("tool", "found", ("a2",)),
        ("user", "thanks", ()),
        ("tool", "late", ()),
    ]
    assert [(c.id, c.name, c.arguments) for m in stored for c in m.calls] == [
        ("a1", "python", "print(2)"),
        ("a2", "web.run", {"q": "x"}),
    ]


def test_a_message_without_a_time_has_that_of_the_one_before(tmp_path: Path) -> None:
    nodes: list[tuple[str, str | None, Json | None]] = [
        ("u1", None, said("u1", "user", "no time yet")),
        ("u2", "u1", said("u2", "user", "a time", create_time=1700000100)),
        ("u3", "u2", said("u3", "user", "none again", create_time=None)),
    ]
    items = read(write_json(tmp_path / "x.json", [chatgpt(nodes, "u3")]))
    times = [
        item.message.at.timestamp() for item in items if isinstance(item, ImportedMessage) and item.message.at
    ]
    assert times == [1700000000.5, 1700000100, 1700000100]


def test_archives_and_titles_come_along_once(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", [chatgpt(HELLO, "a1", is_archived=True, title=" Greeting\n\x07")])
    with Memory(":memory:") as memory:
        import_paths(memory, path)
        (chat,) = memory.chats(archived=True)
        assert chat.title == "Greeting"
        memory.chat("c1").archive(archived=False)
        memory.chat("c1").rename("My own")
        import_paths(memory, path)
        assert [chat.title for chat in memory.chats()] == ["My own"]


def test_zips_folders_and_numbered_parts(tmp_path: Path) -> None:
    parts = {
        f"conversations-00{n}.json": json.dumps([chatgpt(HELLO, "a1", conversation_id=f"c{n}")])
        for n in range(3)
    }
    rest = {"export_manifest.json": '{"files": 3}', "chat.html": "<html>", "user.json": '{"id": "user-1"}'}
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (parts | rest).items():
            archive.writestr(name, text)
    folder = tmp_path / "export"
    folder.mkdir()
    for name, text in (parts | rest).items():
        (folder / name).write_text(text)
    with Memory(":memory:") as memory:
        report = import_paths(memory, tmp_path / "export.zip")
        assert (report.sessions, report.added, dict(report.formats)) == (3, 6, {"ChatGPT": 6})
        assert {Path(skipped.path).name for skipped in report.skipped} == {
            "export_manifest.json",
            "user.json",
        }
        assert not report.problems
        again = import_paths(memory, folder)
        assert (again.added, again.present) == (0, 6)


def test_a_single_conversation_and_strange_ones(tmp_path: Path) -> None:
    single = chatgpt(HELLO, "a1")
    del single["conversation_id"]
    assert {chat for chat, _, _ in messages(read(write_json(tmp_path / "chat.json", single, indent=2)))} == {
        "chat"
    }
    strange: list[object] = [
        {"mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}, "c": 3, "d": {"children": 4}}},
        {"mapping": {"a": {"parent": "a", "message": {"author": "x", "content": ["?"], "metadata": []}}}},
        {"mapping": {"a": {"message": {"author": {"role": "critic"}, "content": "hm"}}}},
        {"mapping": {}, "current_node": ["x"]},
        "nothing",
        chatgpt(HELLO, "a1"),
    ]
    items = read(write_json(tmp_path / "strange.json", strange))
    assert contents(items) == ["Hello", "Hi!"]
    assert skips(items) == [(2, "empty"), (3, "Unknown role 'critic'."), (5, "no conversation")]
