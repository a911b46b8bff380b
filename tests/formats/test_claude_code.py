from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Memory
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.importing import import_paths
from tables import each
from transcripts import Json, claude, contents, messages, only_source, read, result, skips, use, write_lines

LEFT = "on a branch that was left: its prompt was rewound and asked anew"


def test_every_line_becomes_one_message_with_the_whole_line_as_raw(tmp_path: Path) -> None:
    lines = [
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
        claude("user", "u1", None, "fix the bug"),
        claude("assistant", "a1", "u1", [{"type": "thinking", "thinking": "hm", "signature": "x"}]),
        claude("assistant", "a2", "a1", [{"type": "text", "text": "I'll look."}]),
        claude("assistant", "a3", "a2", use("t1")),
        claude("user", "r1", "a3", result("t1", "main.py")),
        {"type": "system", "uuid": "y1", "parentUuid": "r1", "sessionId": "s1", "subtype": "turn_duration"},
    ]
    items = read(write_lines(tmp_path / "s1.jsonl", lines))

    found = [item for item in items if isinstance(item, ImportedMessage)]
    assert [(f.line, f.message.role, f.message.content) for f in found] == [
        (2, "user", "fix the bug"),
        (3, "assistant", "[reasoning]"),
        (4, "assistant", "I'll look."),
        (5, "assistant", ""),
        (6, "tool", "main.py"),
    ]
    assert [f.message.raw for f in found] == lines[1:6]
    assert [f.message.id for f in found] == ["u1", "a1", "a2", "a3", "r1"]
    assert {f.message.at.isoformat() for f in found if f.message.at} == {"2026-01-06T09:15:59.901000+00:00"}
    assert {f.chat.id for f in found} == {"s1"}
    assert skips(items) == [(1, "not conversation: file-history-snapshot"), (7, "not conversation: system")]


def test_what_the_program_writes_is_not_conversation(tmp_path: Path) -> None:
    items = read(
        write_lines(
            tmp_path / "s1.jsonl",
            [
                {"type": "summary", "summary": "Fixing", "leafUuid": "x"},
                claude("user", "m1", None, "Caveat: …", isMeta=True),
                claude("user", "u1", "m1", "hello"),
                claude("user", "c1", "u1", "This session is being continued…", isCompactSummary=True),
                {"type": "progress", "uuid": "p1", "parentUuid": "u1", "sessionId": "s1", "data": {}},
                {"type": "queue-operation", "sessionId": "s1"},
                {"uuid": "z", "sessionId": "s1"},
            ],
        )
    )
    assert contents(items) == ["hello"]
    assert [reason for _, reason in skips(items)] == [
        "not conversation: summary",
        "not conversation: written by the program (isMeta)",
        "a summary of messages that come before it (isCompactSummary)",
        "not conversation: progress",
        "not conversation: queue-operation",
        "not conversation: no type",
    ]


def test_a_prompt_that_was_rewound_is_left_out_with_all_that_follows_it(tmp_path: Path) -> None:
    items = read(
        write_lines(
            tmp_path / "s1.jsonl",
            [
                claude("user", "u1", None, "one"),
                claude("assistant", "a1", "u1", "first answer"),
                claude("user", "u2", "a1", "wrong"),
                claude("assistant", "a2", "u2", "wrong answer"),
                claude("user", "u3", "a2", "still wrong"),
                claude("user", "u4", "a1", "right"),
                claude("assistant", "a4", "u4", "right answer"),
            ],
        )
    )
    assert contents(items) == ["one", "first answer", "right", "right answer"]
    assert skips(items) == [(3, LEFT), (4, LEFT), (5, LEFT)]


def test_the_thread_goes_on_from_the_newest_line_not_from_the_newest_prompt(tmp_path: Path) -> None:
    items = read(
        write_lines(
            tmp_path / "s1.jsonl",
            [
                claude("user", "u1", None, "one"),
                claude("user", "u2", "u1", "older prompt"),
                claude("user", "u3", "u1", "newer prompt"),
                claude("assistant", "a2", "u2", "newest line"),
            ],
        )
    )
    assert contents(items) == ["one", "older prompt", "newest line"]
    assert skips(items) == [(3, LEFT)]


def test_parallel_tool_calls_keep_all_their_results(tmp_path: Path) -> None:
    items = read(
        write_lines(
            tmp_path / "s1.jsonl",
            [
                claude("user", "u1", None, "read both"),
                claude("assistant", "a1", "u1", use("t1")),
                claude("assistant", "a2", "a1", use("t2")),
                claude("user", "r1", "a1", result("t1", "one")),  # a fork: its sibling is a2
                claude("user", "r2", "a2", result("t2", "two")),
                claude("assistant", "a3", "r2", "Done."),
            ],
        )
    )
    assert contents(items) == ["read both", "", "", "one", "two", "Done."]
    assert not skips(items)


def test_forks_that_progress_lines_make_are_one_thread(tmp_path: Path) -> None:
    def progress(uuid: str, parent: str) -> dict[str, object]:
        return {"type": "progress", "uuid": uuid, "parentUuid": parent, "sessionId": "s1"}

    items = read(
        write_lines(
            tmp_path / "s1.jsonl",
            [
                claude("user", "u1", None, "go"),
                claude("assistant", "a1", "u1", use("t1")),
                progress("p1", "a1"),
                claude("user", "r1", "a1", result("t1")),
                claude("assistant", "a2", "r1", "Half done."),
                progress("p2", "p1"),
                claude("user", "u2", "p2", "and then?"),
            ],
        )
    )
    assert contents(items) == ["go", "", "done", "Half done.", "and then?"]


def test_the_originals_stand_in_the_place_of_a_compaction_summary(tmp_path: Path) -> None:
    items = read(
        write_lines(
            tmp_path / "s1.jsonl",
            [
                claude("user", "u1", None, "before"),
                claude("assistant", "a1", "u1", "yes"),
                {
                    "type": "system",
                    "subtype": "compact_boundary",
                    "uuid": "b1",
                    "parentUuid": None,
                    "logicalParentUuid": "a1",
                    "sessionId": "s1",
                },
                claude("user", "c1", "b1", "The user said: before", isCompactSummary=True),
                claude("assistant", "a2", "c1", "after"),
            ],
        )
    )
    assert contents(items) == ["before", "yes", "after"]


def test_a_broken_line_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    items = read(
        write_lines(
            tmp_path / "s1.jsonl",
            [
                claude("user", "u1", None, "one"),
                '{"type":"assistant","uuid":"a1","parentUu',
                claude("user", "u2", "a1", "two"),
                claude("assistant", "a2", "u2", "three"),
            ],
        )
    )
    assert contents(items) == ["one", "two", "three"]
    assert skips(items) == [(2, "not valid JSON")]


def test_subagents_are_sessions_of_their_own_in_the_file_and_beside_it(tmp_path: Path) -> None:
    main = [
        claude("user", "u1", None, "delegate"),
        claude("assistant", "a1", "u1", use("t1", "Task")),
        claude(
            "user", "x1", "a1", "first task", isSidechain=True
        ),  # two prompts at one line, but no rewinding
        claude("user", "x2", "a1", "second task", isSidechain=True),
        claude("assistant", "x3", "x1", "first reply", isSidechain=True),
        claude("assistant", "x4", "x2", "second reply", isSidechain=True),
        claude("user", "r1", "a1", result("t1")),
    ]
    own = [
        claude("user", "y1", None, "third task", isSidechain=True, agentId="abc"),
        claude("assistant", "y2", "y1", "third reply", isSidechain=True, agentId="abc"),
    ]
    write_lines(tmp_path / "proj" / "s1.jsonl", main)
    write_lines(tmp_path / "proj" / "s1" / "subagents" / "agent-abc.jsonl", own)
    with Memory(":memory:") as memory:
        report = import_paths(memory, tmp_path)
        told = {chat.id: [m.content for m in memory.chat(chat.id).history()] for chat in memory.chats()}
    assert told == {
        "s1": ["delegate", "", "done"],
        "s1/agent-x1": ["first task", "first reply"],
        "s1/agent-x2": ["second task", "second reply"],
        "s1/agent-abc": ["third task", "third reply"],
    }
    assert (report.added, report.problems) == (9, ())


def test_a_subagent_file_without_marks_is_named_after_itself(tmp_path: Path) -> None:
    lines = [
        claude("user", "y1", None, "task", isSidechain=True),
        "broken",
        claude("assistant", "y3", "y2", "reply", isSidechain=True),
    ]
    items = read(write_lines(tmp_path / "agent-abc.jsonl", lines))
    assert messages(items) == [("s1/agent-abc", "user", "task"), ("s1/agent-abc", "assistant", "reply")]


def test_a_resumed_session_is_called_after_its_file(tmp_path: Path) -> None:
    lines = [
        claude("user", "u1", None, "copied", sessionId="s0"),
        claude("user", "u2", "u1", "new", sessionId="s1"),
    ]
    assert {chat for chat, _, _ in messages(read(write_lines(tmp_path / "s1.jsonl", lines)))} == {"s1"}
    assert {chat for chat, _, _ in messages(read(write_lines(tmp_path / "copy.jsonl", lines)))} == {"s0"}


def test_the_title_is_the_one_given_last_and_the_users_goes_before_the_models(tmp_path: Path) -> None:
    lines = [
        {"type": "custom-title", "customTitle": "Old", "sessionId": "s1"},
        {"type": "custom-title", "customTitle": "Mine", "sessionId": "s1"},
        {"type": "ai-title", "aiTitle": "Theirs", "sessionId": "s1"},
        claude("user", "u1", None, "hello"),
    ]
    with Memory(":memory:") as memory:
        import_paths(memory, write_lines(tmp_path / "s1.jsonl", lines))
        assert [chat.title for chat in memory.chats()] == ["Mine"]


def test_a_session_that_grows_is_imported_from_where_it_was(tmp_path: Path) -> None:
    lines: list[object] = [claude("user", "u0", None, "message 0")]
    lines += [claude("user", f"u{n}", f"u{n - 1}", f"message {n}") for n in range(1, 9)]
    with Memory(":memory:") as memory:
        cut = write_lines(tmp_path / "s1.jsonl", [*lines[:4], '{"type":"user","uuid":"u4","par'])
        first = import_paths(memory, cut)
        assert (first.added, [s.lines[0] for s in first.problems]) == (4, [5])
        second = import_paths(memory, write_lines(tmp_path / "s1.jsonl", lines))
        assert (second.added, second.present, second.problems) == (5, 4, ())
        assert [m.content for m in memory.chat("s1").history()] == [f"message {n}" for n in range(9)]


def test_the_same_line_twice_is_one_message_and_another_under_its_uuid_is_reported(tmp_path: Path) -> None:
    line = claude("user", "u1", None, "hello")
    path = write_lines(tmp_path / "s1.jsonl", [line, line, claude("user", "u1", None, "goodbye")])
    with Memory(":memory:") as memory:
        report = import_paths(memory, path)
        assert (report.added, report.present) == (1, 1)
        assert [(s.lines[0], s.reason) for s in report.problems] == [
            (3, "another message is stored under its id")
        ]


def test_lines_written_while_reading_are_left_for_the_next_time(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "s1.jsonl", [claude("user", f"u{n}", None, f"message {n}") for n in range(3)]
    )
    reading = only_source(path).read()
    assert isinstance(next(reading), ImportedMessage)
    with path.open("a", encoding="utf-8") as log:
        log.write('{"type":"user"')
    assert contents(list(reading)) == ["message 1", "message 2"]


def test_circles_and_strange_values_do_no_harm(tmp_path: Path) -> None:
    lines = [
        claude("user", "u1", "u2", "one"),
        claude("user", "u2", "u1", "two"),
        claude("user", "u3", "u3", "three"),
        {
            **claude("user", "u4", None, "four"),
            "uuid": 7,
            "parentUuid": ["x"],
            "sessionId": {},
            "timestamp": None,
        },
        {**claude("user", "u5", None, "five"), "message": "five"},
        {**claude("user", "u6", None, "six"), "timestamp": "yesterday"},
        {**claude("user", "u7", None, "seven"), "message": {"role": "frog", "content": "quak"}},
        claude("assistant", "u8", None, []),
    ]
    items = read(write_lines(tmp_path / "s1.jsonl", lines))
    assert contents(items) == ["three", "four", "one", "two"]
    assert len(items) == len(lines)
    assert [reason for _, reason in skips(items)][-4:] == [
        "The line has no message.",
        "Invalid time 'yesterday'.",
        "Unknown role 'frog'.",
        "The message is empty.",
    ]


@pytest.mark.slow
def test_a_long_chain_and_a_wide_fork_are_read_in_linear_time(tmp_path: Path) -> None:
    chain = [claude("user", f"u{n}", f"u{n - 1}" if n else None, f"message {n}") for n in range(20_000)]
    fork = [claude("user", f"f{n}", "u19999", f"fork {n}") for n in range(20_000)]
    items = read(write_lines(tmp_path / "s1.jsonl", [*chain, *fork]))
    assert contents(items) == [f"message {n}" for n in range(20_000)] + ["fork 19999"]


def test_what_a_hook_added_is_no_conversation(tmp_path: Path) -> None:
    block = "<recalled>\nThe user likes tea.\n</recalled>"
    reminder = f"<system-reminder>\nUserPromptSubmit hook additional context: {block}\n</system-reminder>"
    attachment = {"type": "hook_additional_context", "content": [block], "hookEvent": "UserPromptSubmit"}
    lines = [
        claude("user", "u1", None, "what do I like?"),
        claude("attachment", "x1", "u1", "") | {"attachment": attachment},
        claude("user", "u2", "x1", reminder),
        claude("user", "u3", "u2", [{"type": "text", "text": reminder}]),
        claude("user", "u4", "u3", f"<user-prompt-submit-hook>{block}</user-prompt-submit-hook>"),
        claude("assistant", "a1", "u4", "Tea."),
        # What the user says of it is the user's.
        claude("user", "u5", "a1", f"{reminder} is wrong"),
        claude("user", "u6", "u5", "<system-reminder>Be brief.</system-reminder>"),
    ]
    items = read(write_lines(tmp_path / "s1.jsonl", lines))
    assert [text[:9] for text in contents(items)] == ["what do I", "Tea.", "<system-r", "<system-r"]
    added = "not conversation: context that a hook added"
    assert skips(items) == [(2, "not conversation: attachment"), (3, added), (4, added), (5, added)]


def queued(uuid: str, parent: str, prompt: object, mode: str = "prompt", **more: object) -> Json:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": mode, **more}
    line = claude("attachment", uuid, parent, "") | {"attachment": attachment}
    del line["message"]
    return line


def test_what_is_typed_while_a_tool_runs_is_said_by_the_user_at_its_place(tmp_path: Path) -> None:
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
    assert [text for _, role, text in messages(read(path)) if role == "user"][:3] == [
        "go",
        "and be brief",
        "as here\n[image: image/png]",
    ]
    with Memory(":memory:") as memory:
        import_paths(memory, path)
        said = memory.chat("s1").history()
        assert [one.id for one in said] == ["u1", "a1", "q1", "r1", "q2", "q5", "a2"]
        assert said[2].raw == lines[2]
        assert "471100" not in str([(one.content, one.raw) for one in said])
        for form in ("openai", "anthropic"):
            shown = str(memory.chat("s1").prompt(8000, format=form).messages)
            assert ("be brief" in shown, shown.count("t1") >= 2) == (True, True)


U1 = claude("user", "u1", None, "go")
A1 = claude("assistant", "a1", "u1", "I will.")
T1, R1 = claude("assistant", "t1", "a1", use("c1")), claude("user", "r1", "t1", result("c1"))
A2 = claude("assistant", "a2", "r1", "Done.")
ORDER = [one["uuid"] for one in (U1, A1, T1, R1, A2)]


@each(
    "lines",
    [
        [U1, A1, R1, T1, A2],
        [U1, A1, R1, A2, T1],
        [U1, R1, A1, A2, T1],
        [A2, R1, T1, A1, U1],
        [U1, A1, R1 | {"parentUuid": "a1"}, T1, A2],
        [U1, A1, R1 | {"parentUuid": "elsewhere"}, T1, A2],
    ],
)
def test_no_line_comes_before_the_one_that_it_follows_nor_a_result_before_its_call(
    tmp_path: Path, lines: list[Json]
) -> None:
    with Memory(":memory:") as memory:
        import_paths(memory, write_lines(tmp_path / "s1.jsonl", lines))
        assert [one.id for one in memory.chat("s1").history()] == ORDER
        assert [one.answers for one in memory.chat("s1").history() if one.role == "tool"] == [("c1",)]


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


def test_ids_of_calls_that_are_used_again_move_no_result(tmp_path: Path) -> None:
    again = [claude("assistant", "t2", "a2", use("c1")), claude("user", "r2", "t2", result("c1", "two"))]
    items = read(write_lines(tmp_path / "s1.jsonl", [U1, A1, T1, R1, A2, *again]))
    assert contents(items) == ["go", "I will.", "", "done", "Done.", "", "two"]


def grown(uuid: str, *parts: Json, message: str = "m1", parent: str = "u1") -> Json:
    return claude("assistant", uuid, parent, "") | {
        "message": {"role": "assistant", "id": message, "content": list(parts)}
    }


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def thought(words: str, signature: str) -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


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
    items = read(write_lines(tmp_path / "s1.jsonl", lines))
    found = [item.message.id for item in items if isinstance(item, ImportedMessage)]
    assert found == ["u1", *(f"g{number}" for number in kept)]
    left = "an earlier state of a message, which another line has whole"
    assert [reason for _, reason in skips(items)] == [left] * (len(rows) - len(kept))


def test_two_answers_that_begin_alike_are_two(tmp_path: Path) -> None:
    lines = [U1, grown("g1", text("Done")), grown("g2", text("Done too."), message="m2", parent="g1")]
    assert contents(read(write_lines(tmp_path / "s1.jsonl", lines))) == ["go", "Done", "Done too."]


@each(
    "mark",
    [
        {"isApiErrorMessage": True},
        {"message": {"role": "assistant", "model": "<synthetic>", "content": "Prompt is too long"}},
    ],
)
def test_what_no_model_said_is_no_answer(tmp_path: Path, mark: Json) -> None:
    lines = [U1, claude("assistant", "e1", "u1", "API Error: 529", error="overloaded") | mark]
    lines += [claude("user", "u2", "e1", "continue"), claude("assistant", "a2", "u2", "Yes.")]
    items = read(write_lines(tmp_path / "s1.jsonl", lines))
    assert contents(items) == ["go", "continue", "Yes."]
    assert skips(items) == [(2, "not conversation: an error of the API, or a notice in place of an answer")]


def test_saved_outputs_are_no_conversations_themselves(tmp_path: Path) -> None:
    write_lines(tmp_path / "s1.jsonl", [U1])
    saved = '[{"role": "user", "content": "said in an output"}]'
    write_lines(tmp_path / "s1" / "tool-results" / "c1.json", [saved])
    with Memory(":memory:") as memory:
        report = import_paths(memory, tmp_path)
        assert [chat.id for chat in memory.chats()] == ["s1"]
        assert report.ignored == {".json": 1}


@each(
    ("titles", "title"),
    [
        ([{"type": "summary", "summary": "Trip", "leafUuid": "u1"}], "Trip"),
        ([{"type": "summary", "summary": "Of another", "leafUuid": "x"}], "go"),
        (
            [
                {"type": "summary", "summary": "Trip", "leafUuid": "u1"},
                {"type": "custom-title", "customTitle": "Mine", "sessionId": "s1"},
            ],
            "Mine",
        ),
    ],
)
def test_a_summary_is_the_title_of_the_session_with_its_line(
    tmp_path: Path, titles: list[Json], title: str
) -> None:
    for number, lines in enumerate(([*titles, U1], [U1, *titles])):
        with Memory(":memory:") as memory:
            import_paths(memory, write_lines(tmp_path / f"{number}" / "s1.jsonl", lines))
            assert [chat.title for chat in memory.chats()] == [title]


def test_a_line_of_more_than_16_mib_is_a_problem_with_its_number(tmp_path: Path) -> None:
    long = claude("assistant", "a1", "u1", "x" * (16 << 20))
    items = read(write_lines(tmp_path / "s1.jsonl", [U1, long, claude("user", "u2", "a1", "two")]))
    assert contents(items) == ["go", "two"]
    assert skips(items) == [(2, "longer than 16 MiB")]


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


def test_other_words_under_the_uuid_of_another_session_are_kept(tmp_path: Path) -> None:
    with Memory(":memory:") as memory:
        import_paths(memory, session(tmp_path, "s1", "u1", "a1"))
        other = [claude("user", "u1", None, "something else", sessionId="s2")]
        assert import_paths(memory, write_lines(tmp_path / "s2.jsonl", other)).added == 1
