"""What stands between `<private>` and `</private>`."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.private_tags import PRIVATE, without_private, without_private_parts
from tables import each
from transcripts import claude, result, use, write_lines

SECRET = "the zanzibar account"


@each(
    ("text", "left"),
    [
        ("nothing", "nothing"),
        ("a <private>x</private> b", f"a {PRIVATE} b"),
        ('a < private reason="x">x\ny</ private> b', f"a {PRIVATE} b"),
        ("<private>x<private>y</private>z</private>!", f"{PRIVATE}!"),
        ("a <private>the rest", f"a {PRIVATE}"),
        ("a <private>x <private>y</private> z", f"a {PRIVATE}"),
        ("a </private> b", "a </private> b"),
        ("a <privateer>b</privateer>", "a <privateer>b</privateer>"),
        ("a <priv\nate>b</private>", f"a {PRIVATE}"),
    ],
)
def test_what_is_private_in_a_prompt(text: str, left: str) -> None:
    assert without_private(text) == left


def test_where_no_prompt_is_a_tag_that_nothing_closes_is_a_word() -> None:
    assert without_private("The <private> tag hides.", to_end=False) == "The <private> tag hides."
    text = "The <private> tag: <private>x</private>."
    assert without_private(text, to_end=False) == f"The <private> tag: {PRIVATE}."


def test_a_range_may_go_over_parts_of_a_prompt() -> None:
    parts = ["a <private>x", "x", "y</private> b", "x"]
    assert without_private_parts(parts) == [f"a {PRIVATE}", PRIVATE, f"{PRIVATE} b", "x"]
    assert without_private_parts(["a <pri", "vate>x</private> b"]) == [f"a {PRIVATE}", f"{PRIVATE} b"]


@given(
    st.lists(
        st.sampled_from(["<private>", "</private>", "<PRIVATE >", "q", "<", ">", "</", "private", " "]),
        max_size=40,
    )
)
def test_what_is_left_is_what_stands_outside_of_all_tags(parts: list[str]) -> None:
    left = without_private("".join(parts))
    assert without_private(left) == left
    depth = outside = 0
    for piece in re.split(r"(</?private ?>)", "".join(parts), flags=re.IGNORECASE):
        if re.fullmatch(r"<private ?>", piece, re.IGNORECASE):
            depth += 1
        elif re.fullmatch(r"</private ?>", piece, re.IGNORECASE):
            depth = max(0, depth - 1)
        elif not depth:
            outside += piece.count("q")
    # A tag that nothing closes covers all to the end, what is closed within it as well.
    assert left.replace(PRIVATE, "").count("q") == outside


def imported(memory: Memory, path: Path) -> str:
    """Import a file, and return all that is stored of its chat."""
    import_paths(memory, path)
    (chat,) = memory.chats()
    read = memory.chat(chat.id).history()
    return repr([chat, *[(one.content, one.calls, one.raw, one.meta) for one in read]])


def test_what_is_private_is_stored_nowhere(quick: Memory, tmp_path: Path) -> None:
    """Neither where a prompt says it, nor where the payload, the title or another message repeats it."""
    prompt = f"Pay from <private>{SECRET}</private> today."
    call = {"description": "Pay", "prompt": f"Pay from {SECRET}, and say so."}
    lines = [
        claude("user", "u1", None, "hello", todos=[f"ask for {SECRET}"]),
        claude("user", "u2", "u1", prompt, attachments=[{"text": prompt}], display=prompt),
        claude("assistant", "a1", "u2", [{"type": "thinking", "thinking": f"They mean {SECRET}."}]),
        claude("assistant", "a2", "a1", f"I pay from {SECRET}."),
        claude("assistant", "a3", "a2", [{**use("t1", "Task")[0], "input": call}]),
        claude("user", "r1", "a3", result("t1", prompt), toolUseResult={"prompt": prompt, "out": SECRET}),
        {"type": "ai-title", "aiTitle": f"Paying from {SECRET}", "sessionId": "s1"},
        {"type": "queue-operation", "sessionId": "s1", "content": prompt},
        claude(
            "user", "u3", "r1", [{"type": "text", "text": "<private>zanzi"}, {"type": "text", "text": "bar"}]
        ),
    ]
    stored = imported(quick, write_lines(tmp_path / "s1.jsonl", lines))
    assert "zanzi" not in stored
    assert f"Pay from {PRIVATE} today." in stored
    assert f"I pay from {PRIVATE}." in stored


def test_what_was_stored_before_it_was_marked_stays_and_is_told(memory: Memory, tmp_path: Path) -> None:
    """No second version of a message appears beside it, and the report names what removes it."""
    path = tmp_path / "s1.jsonl"
    lines = [claude("user", "u1", None, f"Use {SECRET}."), claude("assistant", "a1", "u1", "Yes.")]
    import_paths(memory, write_lines(path, lines))
    lines.append(claude("user", "u2", "a1", f"I mean <private>{SECRET}</private>."))
    report = import_paths(memory, write_lines(path, lines))
    assert (report.added, report.present, report.problems) == (1, 2, ())
    ((reason, places),) = [(one.reason, one.lines) for one in report.skipped]
    assert "holdfast erase" in reason
    assert places == (1,)
    assert [one.content for one in memory.chat("s1").history()] == [
        f"Use {SECRET}.",
        "Yes.",
        f"I mean {PRIVATE}.",
    ]


def test_a_subagent_is_not_told_more_than_its_session(quick: Memory, tmp_path: Path) -> None:
    """The file of a subagent repeats what only the prompt of its session marks as private."""
    asked = claude("user", "u1", None, f"Use <private>{SECRET}</private>.")
    write_lines(tmp_path / "s1.jsonl", [asked])
    task = claude("user", "b1", None, f"You use {SECRET}.", isSidechain=True, agentId="7")
    write_lines(tmp_path / "s1" / "subagents" / "agent-7.jsonl", [task])
    write_lines(tmp_path / "agent-8.jsonl", [{**task, "uuid": "b2", "agentId": "8"}])
    import_paths(quick, tmp_path)
    read = [one.content for chat in quick.chats() for one in quick.chat(chat.id).history()]
    assert sorted(read) == sorted([f"Use {PRIVATE}.", f"You use {PRIVATE}.", f"You use {PRIVATE}."])
