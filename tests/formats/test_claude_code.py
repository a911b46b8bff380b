from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats.importing import import_paths
from tables import each
from transcripts import (
    Json,
    claude,
    result,
    take,
    use,
    write_lines,
)

LEFT = "on a branch that was left: its prompt was rewound and asked anew"
HOOK = "not conversation: context that a hook added"
NO_ANSWER = "not conversation: an error of the API, or a notice in place of an answer"
BLOCK = "<recalled>\nThe user likes tea.\n</recalled>"
REMINDER = f"<system-reminder>\nUserPromptSubmit hook additional context: {BLOCK}\n</system-reminder>"
U1 = claude("user", "u1", None, "go")
A1 = claude("assistant", "a1", "u1", "I will.")
T1, R1 = claude("assistant", "t1", "a1", use("c1")), claude("user", "r1", "t1", result("c1"))
A2 = claude("assistant", "a2", "r1", "Done.")
ORDER = [one["uuid"] for one in (U1, A1, T1, R1, A2)]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def thought(words: str, signature: str) -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def grown(uuid: str, *parts: Json, message: str = "m1", parent: str = "u1") -> Json:
    said = {"role": "assistant", "id": message, "content": list(parts)}
    return claude("assistant", uuid, parent, "") | {"message": said}


def of_program(kind: str, uuid: str, parent: str | None, **more: object) -> Json:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", **more}


@each(
    ("lines", "ids", "left"),
    [
        # Every line is a message, but for what the program writes.
        (
            [
                {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
                U1,
                claude("user", "m1", "u1", "Caveat: …", isMeta=True),
                of_program("system", "y1", "m1", subtype="turn_duration"),
                claude("user", "c1", "y1", "This session is being continued…", isCompactSummary=True),
                {"uuid": "z", "sessionId": "s1"},
            ],
            ["u1"],
            [
                (1, "not conversation: file-history-snapshot"),
                (3, "not conversation: written by the program (isMeta)"),
                (4, "not conversation: system"),
                (5, "a summary of messages that come before it (isCompactSummary)"),
                (6, "not conversation: no type"),
            ],
        ),
        # A prompt that was rewound is left out with all that follows it.
        (
            [
                *(U1, A1, claude("user", "x2", "a1", "wrong"), claude("assistant", "x3", "x2", "wrong too")),
                *(claude("user", "x4", "x3", "still wrong"), claude("user", "u4", "a1", "right")),
                claude("assistant", "a4", "u4", "right answer"),
            ],
            ["u1", "a1", "u4", "a4"],
            [(3, LEFT), (4, LEFT), (5, LEFT)],
        ),
        # The thread goes on from the newest line, not from the newest prompt.
        (
            [
                *(U1, claude("user", "u2", "u1", "older"), claude("user", "u3", "u1", "newer")),
                claude("assistant", "a2", "u2", "newest line"),
            ],
            ["u1", "u2", "a2"],
            [(3, LEFT)],
        ),
        # Calls in parallel fork the thread, and so do lines of progress: it stays one.
        (
            [
                *(U1, claude("assistant", "a1", "u1", use("t1")), claude("assistant", "a2", "a1", use("t2"))),
                *(claude("user", "r1", "a1", result("t1")), claude("user", "r2", "a2", result("t2"))),
            ],
            ["u1", "a1", "a2", "r1", "r2"],
            [],
        ),
        (
            [
                *(U1, A1, T1, of_program("progress", "p1", "t1"), R1, A2),
                *(of_program("progress", "p2", "p1"), claude("user", "u2", "p2", "and then?")),
            ],
            [*ORDER, "u2"],
            [(4, "not conversation: progress"), (7, "not conversation: progress")],
        ),
        # The originals stand in the place of the summary of a compaction.
        (
            [
                *(U1, A1, of_program("system", "b1", None, logicalParentUuid="a1")),
                claude("user", "c1", "b1", "The user said: before", isCompactSummary=True),
                claude("assistant", "a2", "c1", "after"),
            ],
            ["u1", "a1", "a2"],
            [
                (3, "not conversation: system"),
                (4, "a summary of messages that come before it (isCompactSummary)"),
            ],
        ),
        # A result stands behind its call, whatever line it says that it follows.
        ([U1, A1, R1 | {"parentUuid": "a1"}, T1, A2], ORDER, []),
        # A broken line costs only itself, and so does one of more than 16 MiB.
        (
            [
                *(U1, '{"type":"assistant","uuid":"a1","parentUu', claude("user", "u2", "a1", "two")),
                claude("assistant", "a2", "u2", "x" * (17 << 20)),
                claude("user", "u3", "a2", "three"),
            ],
            ["u1", "u2", "u3"],
            [(2, "not valid JSON"), (4, "longer than 16 MiB")],
        ),
        # What a hook added is no conversation; what the user says of it is the user's.
        (
            [
                *(U1, claude("attachment", "x1", "u1", "") | {"attachment": {"content": [BLOCK]}}),
                claude("user", "x2", "x1", REMINDER),
                claude("user", "x3", "x2", [text(REMINDER)]),
                claude("user", "x4", "x3", f"<user-prompt-submit-hook>{BLOCK}</user-prompt-submit-hook>"),
                claude("user", "u5", "x4", f"{REMINDER} is wrong"),
                claude("user", "u6", "u5", "<system-reminder>Be brief.</system-reminder>"),
            ],
            ["u1", "u5", "u6"],
            [(2, "not conversation: attachment"), (3, HOOK), (4, HOOK), (5, HOOK)],
        ),
        # What no model said is no answer.
        ([U1, A1 | {"isApiErrorMessage": True}], ["u1"], [(2, NO_ANSWER)]),
        (
            [U1, A1 | {"message": {"role": "assistant", "model": "<synthetic>", "content": "Too long"}}],
            ["u1"],
            [(2, NO_ANSWER)],
        ),
        # Ids of calls that are used again move no result, and answers that begin alike are two.
        (
            [
                *(U1, A1, T1, R1, A2, claude("assistant", "t2", "a2", use("c1"))),
                claude("user", "r2", "t2", result("c1", "two")),
            ],
            [*ORDER, "t2", "r2"],
            [],
        ),
    ],
)
def test_the_lines_of_a_session_are_its_thread(
    tmp_path: Path, lines: list[object], ids: list[str], left: list[tuple[int, str]]
) -> None:
    taken = take(write_lines(tmp_path / "s1.jsonl", lines))
    assert taken.ids == ids
    assert taken.left == left


def test_a_message_has_the_whole_line_as_raw(tmp_path: Path) -> None:
    lines = [U1, claude("assistant", "a1", "u1", [thought("hm", "x")]), T1, R1]
    taken = take(write_lines(tmp_path / "s1.jsonl", lines))
    assert taken.said == [("user", "go"), ("assistant", "[reasoning]"), ("assistant", ""), ("tool", "done")]
    assert [one.raw for _, one in taken.messages] == lines
    assert {str(one.at) for _, one in taken.messages} == {"2026-01-06 09:15:59.901000+00:00"}
    assert taken.by_chat.keys() == {"s1"}


def test_subagents_are_sessions_of_their_own_in_the_file_and_beside_it(tmp_path: Path) -> None:
    def side(kind: str, uuid: str, parent: str | None, text: str, **more: object) -> Json:
        return claude(kind, uuid, parent, text, isSidechain=True, **more)

    main = [
        *(U1, claude("assistant", "a1", "u1", use("t1", "Task"))),
        # Two prompts at one line, but no rewinding.
        *(side("user", "x1", "a1", "first task"), side("user", "x2", "a1", "second task")),
        *(side("assistant", "x3", "x1", "first reply"), side("assistant", "x4", "x2", "second reply")),
        claude("user", "r1", "a1", result("t1")),
    ]
    marks = {"agentId": "abc"}
    own = [side("user", "y1", None, "third", **marks), side("assistant", "y2", "y1", "reply", **marks)]
    unmarked = [side("user", "z1", None, "fourth"), "broken", side("assistant", "z3", "z2", "reply")]
    write_lines(tmp_path / "proj" / "s1.jsonl", main)
    write_lines(tmp_path / "proj" / "s1" / "subagents" / "agent-abc.jsonl", own)
    write_lines(tmp_path / "proj" / "s1" / "subagents" / "agent-def.jsonl", unmarked)
    taken = take(tmp_path)
    assert taken.by_chat == {
        "s1": ["go", "", "done"],
        "s1/agent-x1": ["first task", "first reply"],
        "s1/agent-x2": ["second task", "second reply"],
        "s1/agent-abc": ["third", "reply"],
        "s1/agent-def": ["fourth", "reply"],
    }
    assert taken.left == [(2, "not valid JSON")]


def test_a_resumed_session_is_called_after_its_file(tmp_path: Path) -> None:
    lines = [claude("user", "u1", None, "copied", sessionId="s0"), claude("user", "u2", "u1", "new")]
    assert take(write_lines(tmp_path / "s1.jsonl", lines)).chats.keys() == {"s1"}
    assert take(write_lines(tmp_path / "copy.jsonl", lines)).chats.keys() == {"s0"}


@pytest.mark.slow
def test_a_long_chain_and_a_wide_fork_are_read_in_linear_time(tmp_path: Path) -> None:
    chain = [claude("user", f"u{n}", f"u{n - 1}" if n else None, f"message {n}") for n in range(8_000)]
    fork = [claude("user", f"f{n}", "u7999", f"fork {n}") for n in range(8_000)]
    taken = take(write_lines(tmp_path / "s1.jsonl", [*chain, *fork]))
    assert taken.contents == [f"message {n}" for n in range(8_000)] + ["fork 7999"]


def queued(uuid: str, parent: str, prompt: object, mode: str = "prompt", **more: object) -> Json:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": mode, **more}
    line = claude("attachment", uuid, parent, "") | {"attachment": attachment}
    del line["message"]
    return line


def test_what_is_typed_while_a_tool_runs_is_said_by_the_user_at_its_place(
    quick: Memory, tmp_path: Path
) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    lines = [
        claude("user", "u1", None, "go"),
        claude("assistant", "a1", "u1", use("t1")),
        queued("q1", "a1", "and be brief"),
        claude("user", "r1", "q1", result("t1")),
        queued("q2", "r1", [{"type": "text", "text": "as here"}, picture]),
        queued("q3", "q2", "<task-notification>done</task-notification>", "task-notification"),
        queued("q4", "q3", "a notice", isMeta=True),
        queued("q5", "q4", "not <private>the word is 471100</private>"),
        claude("assistant", "a2", "q5", "Not 471100."),
    ]
    path = write_lines(tmp_path / "s1.jsonl", lines)
    import_paths(quick, path)
    said = quick.chat("s1").history()
    assert [one.content for one in said if one.role == "user"][2] == "as here\n[image: image/png]"
    assert [one.id for one in said] == ["u1", "a1", "q1", "r1", "q2", "q5", "a2"]
    assert said[2].raw == lines[2]
    assert "471100" not in str([(one.content, one.raw) for one in said])
    for form in ("openai", "anthropic"):
        shown = str(quick.chat("s1").prompt(8000, format=form).messages)
        assert ("be brief" in shown, shown.count("t1") >= 2) == (True, True)


@each("after", [[], [{"type": "progress", "uuid": "p1", "parentUuid": "r1", "sessionId": "s1"}]])
def test_a_result_at_the_end_waits_for_its_call(tmp_path: Path, after: list[Json]) -> None:
    path = tmp_path / "s1.jsonl"
    with Memory(":memory:") as memory:
        first = import_paths(memory, write_lines(path, [U1, A1, R1, *after]))
        assert (first.added, first.problems, first.skipped[0].lines) == (2, (), (3,))
        assert "whose call is not in the file yet" in first.skipped[0].reason
        assert import_paths(memory, write_lines(path, [U1, A1, R1, *after, T1])).added == 2
        assert import_paths(memory, write_lines(path, [U1, A1, R1, *after, T1, A2])).added == 1
        assert [one.id for one in memory.chat("s1").history()] == ORDER
        assert memory.verify().ok
        assert "tool_result" in str(memory.chat("s1").prompt(8000, format="anthropic").messages)
    with Memory(":memory:") as memory:
        # The session has gone on without it, or the file is the rest of another one.
        assert import_paths(memory, write_lines(path, [U1, A1, R1, *after, A2])).added == 4
        assert import_paths(memory, write_lines(tmp_path / "s2.jsonl", [R1 | {"uuid": "r9"}])).added == 1


@each(
    ("rows", "kept"),
    [
        ([[text("The")], [text("The capital")], [text('The capital is "Lima".')]], [2]),
        ([[text("The")], [text("The capital"), *use("c1")]], [1]),
        ([[thought("h", "")], [thought("hm", "x")], [thought("hm", "x"), text("Yes.")]], [2]),
        ([[text("Yes.")], [text("Yes.")]], [0]),
        ([[text("The capital is")], [text("The capital")]], [0]),
        # What every line of a message has is something else.
        ([[thought("hm", "x")], [text("Yes.")], use("c1"), use("c2")], [0, 1, 2, 3]),
        ([[text("No, wait.")], [text("Yes.")]], [0, 1]),
    ],
)
def test_a_message_that_was_written_again_as_it_grew_is_one(
    tmp_path: Path, rows: list[list[Json]], kept: list[int]
) -> None:
    lines = [U1, *(grown(f"g{number}", *parts) for number, parts in enumerate(rows))]
    taken = take(write_lines(tmp_path / "s1.jsonl", lines))
    assert taken.ids == ["u1", *(f"g{number}" for number in kept)]
    left = "an earlier state of a message, which another line has whole"
    assert [reason for _, reason in taken.left] == [left] * (len(rows) - len(kept))


def test_saved_outputs_are_no_conversations_themselves(tmp_path: Path) -> None:
    write_lines(tmp_path / "s1.jsonl", [U1])
    saved = '[{"role": "user", "content": "said in an output"}]'
    write_lines(tmp_path / "s1" / "tool-results" / "c1.json", [saved])
    taken = take(tmp_path)
    assert (taken.by_chat, taken.report.ignored) == ({"s1": ["go"]}, {".json": 1})


TITLES = {
    name: [{"type": f"{name}-title", f"{name}Title": title, "sessionId": "s1"} for title in ("Old", "Mine")]
    for name in ("custom", "ai")
}
SUMMARY = {"type": "summary", "summary": "Trip", "leafUuid": "u1"}


@each(
    ("titles", "title"),
    [
        ([*TITLES["custom"], *TITLES["ai"][:1]], "Mine"),
        ([SUMMARY], "Trip"),
        ([SUMMARY | {"leafUuid": "x"}], "go"),
        ([SUMMARY, *TITLES["custom"]], "Mine"),
    ],
)
def test_the_title_is_the_one_given_last_and_the_users_goes_first(
    tmp_path: Path, titles: list[Json], title: str
) -> None:
    for lines in ([*titles, U1], [U1, *titles]):
        taken = take(write_lines(tmp_path / "s1.jsonl", lines))
        assert [chat.title for chat in taken.chats.values()] == [title]


def session(folder: Path, name: str, *uuids: str) -> Path:
    rows = zip((None, *uuids), uuids, strict=False)
    lines = [
        claude("user" if uuid[0] == "u" else "assistant", uuid, parent, f"said {uuid}", sessionId=name)
        for parent, uuid in rows
    ]
    return write_lines(folder / f"{name}.jsonl", lines)


@each("order", [("s1", "s2", "s3", "s4"), ("s3", "s4", "s2", "s1"), ("s2", "s1", "s4", "s3")])
def test_a_session_that_goes_on_in_other_files_is_stored_once(tmp_path: Path, order: tuple[str, ...]) -> None:
    rows = ("u1", "a1", "u2", "a2")
    files = {
        "s1": session(tmp_path, "s1", *rows),
        "s2": session(tmp_path, "s2", *rows, "u3", "a3"),
        "s3": session(tmp_path, "s3", *rows, "u3", "a3", "u4"),
        "s4": session(tmp_path, "s4", "u2", "a2", "u5"),  # from a place in the middle on
    }
    with Memory(":memory:") as memory:
        reports = [import_paths(memory, files[name]) for name in order]
        texts = [one.content for chat in memory.chats() for one in memory.chat(chat.id).history()]
        assert sorted(texts) == sorted(f"said {uuid}" for uuid in (*rows, "u3", "a3", "u4", "u5"))
        assert sum(report.added + report.present for report in reports) == 4 + 6 + 7 + 3
        assert memory.verify().ok
