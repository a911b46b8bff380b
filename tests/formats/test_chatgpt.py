from __future__ import annotations

from pathlib import Path

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from transcripts import Json, Taken, chatgpt, said, take, write_json

Node = tuple[str, str | None, Json | None]

HELLO: list[Node] = [
    ("root", None, None),
    ("u1", "root", said("u1", "user", "Hello", create_time=1700000001.25)),
    ("a1", "u1", said("a1", "assistant", "Hi!")),
]


def thread(*spoken: Json) -> Json:
    """Make a conversation of messages that follow each other."""
    parents = [None, *(one["id"] for one in spoken)]
    nodes: list[Node] = [(one["id"], parent, one) for parent, one in zip(parents, spoken, strict=False)]
    return chatgpt(nodes, spoken[-1]["id"])


def taken_of(tmp_path: Path, *conversations: object) -> Taken:
    return take(write_json(tmp_path / "conversations.json", list(conversations)))


def test_the_thread_runs_from_the_current_node_to_the_root(tmp_path: Path) -> None:
    nodes = [*HELLO, ("u2", "a1", said("u2", "user", "old")), ("u3", "a1", said("u3", "user", "edited"))]
    taken = taken_of(tmp_path, chatgpt(nodes, "u3"))
    assert taken.said == [("user", "Hello"), ("assistant", "Hi!"), ("user", "edited")]
    assert taken.left == [(1, "on a branch that was left: the prompt was edited or the answer made anew")]
    first = taken.messages[0][1]
    assert (first.raw, first.id) == (HELLO[1][2], "u1")
    # A message without a time has that of the one before, or of the conversation.
    assert {str(one.at) for _, one in taken.messages} == {"2023-11-14 22:13:21.250000+00:00"}
    assert taken.chats["c1"].title == "A title"
    untimed = taken_of(tmp_path, thread(said("u1", "user", "no time")))
    assert str(untimed.messages[0][1].at) == "2023-11-14 22:13:20.500000+00:00"


def test_without_a_current_node_the_newest_leaf_counts(tmp_path: Path) -> None:
    nodes = [
        *HELLO,
        ("new", "a1", said("new", "user", "newer", create_time=1700000009)),
        ("old", "a1", said("old", "user", "older", create_time=1700000008)),
    ]
    nameless = chatgpt(nodes, None)
    for node in nameless["mapping"].values():
        del node["parent"]  # it is found through the children
    for conversation in (nameless, chatgpt(nodes, "gone")):
        assert taken_of(tmp_path, conversation).contents == ["Hello", "Hi!", "newer"]


def test_hidden_empty_and_settings_messages_are_left_out(tmp_path: Path) -> None:
    settings = {"content_type": "user_editable_context", "user_profile": "Ada"}
    taken = taken_of(
        tmp_path,
        thread(
            said("s1", "system", ""),
            said("s2", "user", settings),
            said("s3", "system", "Original custom instructions no longer available", weight=0),
            said("s4", "system", "secret", metadata={"is_visually_hidden_from_conversation": True}),
            said("u1", "user", "see", metadata={"attachments": [{"name": "report.pdf"}, {"id": 1}, "x"]}),
        ),
    )
    assert taken.contents == ["see\n[file: report.pdf]"]
    assert [reason for _, reason in taken.left] == [
        "empty",
        *["hidden in ChatGPT"] * 2,
        "settings of the account, not conversation",
    ]


IMAGE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-abc"}
DRAWN = IMAGE | {"metadata": {"dalle": {"prompt": "a red fox"}}}
SPOKEN = {"content_type": "audio_transcription", "text": "spoken"}


def content(kind: str, **more: object) -> Json:
    return {"content_type": kind, **more}


KINDS: list[tuple[object, str]] = [
    (content("text", parts=["a", "", "b"]), "a\nb"),
    (content("multimodal_text", parts=[DRAWN, "look"]), "[image: a red fox]\nlook"),
    (content("multimodal_text", parts=[IMAGE | {"metadata": None}]), "[image: file-abc]"),
    (
        content("multimodal_text", parts=[SPOKEN, content("audio_asset_pointer")]),
        "spoken\n[audio_asset_pointer]",
    ),
    (content("code", language="python", text="1+1"), "1+1"),
    (content("thoughts", thoughts=[{"summary": "s", "content": "c"}]), "[reasoning]"),
    (content("reasoning_recap", content="Thought for 5s"), "[reasoning]"),
    (content("tether_quote", title="Page", text="quoted", url="https://e.org"), "Page\nquoted"),
    (content("tether_browsing_display", result="results", summary=""), "results"),
    (content("system_error", name="Error", text="failed"), "Error\nfailed"),
    (content("hologram", beam=[1]), "[hologram]"),
    (content("hologram", parts=[]), "[hologram]"),
    (content("hologram", parts=[7, None, {}, {"text": 3}]), "[part]\n[part]"),
    ("just text", "just text"),
]


def test_every_kind_of_content_becomes_text(tmp_path: Path) -> None:
    spoken = [said(f"n{n}", "assistant", content) for n, (content, _) in enumerate(KINDS)]
    assert taken_of(tmp_path, thread(*spoken)).contents == [text for _, text in KINDS]


def test_messages_to_tools_are_calls_and_those_of_tools_their_results(tmp_path: Path) -> None:
    def of_tool(key: str, name: str, text: object) -> Json:
        return said(key, "tool", text, author={"role": "tool", "name": name})

    taken = taken_of(
        tmp_path,
        thread(
            of_tool("t0", "file_search", "a file"),
            said("u1", "user", "two?"),
            said("a1", "assistant", content("code", text="print(2)"), recipient="python"),
            of_tool("t1", "python", content("execution_output", text="2")),
            of_tool("t2", "python", content("execution_output", text="")),
            said("a2", "assistant", content("code", text='{"q": "x"}'), recipient="web.run"),
            of_tool("t3", "web", "found"),
            said("u2", "user", "thanks"),
            of_tool("t4", "web", "late"),
        ),
    )
    assert [(m.id, m.content, m.answers) for _, m in taken.messages if m.role == "tool"] == [
        ("t0", "a file", ()),
        ("t1", "2", ("a1",)),
        ("t2", "", ("a1",)),
        ("t3", "found", ("a2",)),
        ("t4", "late", ()),
    ]
    assert [(c.id, c.name, c.arguments) for _, m in taken.messages for c in m.calls] == [
        ("a1", "python", "print(2)"),
        ("a2", "web.run", {"q": "x"}),
    ]


def test_archives_and_titles_come_along_once(quick: Memory, tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", [chatgpt(HELLO, "a1", is_archived=True, title=" Greeting\n\x07")])
    import_paths(quick, path)
    (chat,) = quick.chats(archived=True)
    assert chat.title == "Greeting"
    quick.chat("c1").archive(archived=False)
    quick.chat("c1").rename("My own")
    import_paths(quick, path)
    assert [chat.title for chat in quick.chats()] == ["My own"]


def test_a_single_conversation_without_an_id_is_named_after_its_file(tmp_path: Path) -> None:
    single = chatgpt(HELLO, "a1")
    del single["conversation_id"]
    assert take(write_json(tmp_path / "chat.json", single, indent=2)).chats.keys() == {"chat"}
