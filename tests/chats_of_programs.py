"""Small chats as other programs write them: by hand, in the forms of their sources and of public files."""

from __future__ import annotations

import html
import json
from typing import Any

Json = dict[str, Any]

PIXEL = "data:image/png;base64,iVBORw0KGgo="
DAY = "2026-03-01T10:00:{:02}.000Z"


def claude_ai() -> Json:
    def message(n: int, sender: str, parent: str, *content: Json, **more: Any) -> Json:
        fields = {"uuid": f"m{n}", "text": "", "content": list(content), "sender": sender}
        return {
            **fields,
            "created_at": DAY.format(n),
            "parent_message_uuid": parent,
            "attachments": [],
            "files": [],
            **more,
        }

    def text(words: str) -> Json:
        return {"type": "text", "text": words}

    tide = {"file_name": "tides.txt", "extracted_content": "Brest 06:12"}
    pasted = {"file_name": "", "extracted_content": "Pasted words"}
    use = {"type": "tool_use", "name": "web_search", "input": {"query": "tides"}, "id": None}
    result = {"type": "tool_result", "name": "web_search", "content": [text("18:40")], "tool_use_id": None}
    return {
        "uuid": "c1",
        "name": "Tides",
        "chat_messages": [
            message(
                1,
                "human",
                "00000000-0000-4000-8000-000000000000",
                text("When is high water?"),
                attachments=[tide, pasted],
                files=[{"file_name": "map.png", "file_kind": "image"}],
            ),
            message(2, "assistant", "m1", text("An earlier answer")),
            message(
                3,
                "assistant",
                "m1",
                {"type": "thinking", "thinking": "look"},
                {"type": "token_budget", "budget": 9},
                use,
                result,
                text("At 18:40."),
            ),
            message(4, "human", "m3", text=" Thanks "),
        ],
    }


AIDER = """
# aider chat started at 2026-05-13 16:01:48

> Aider v0.86.2  
> /usr/bin/aider --message Add a lid  
and more of the command line

#### Add a lid  
####   
####   to the teapot  

I added it:

#### Steps
> quoted

> Tokens: 1.0k sent, 376 received.  
It has a test.

#### /undo  

#### <blank>  

# aider chat started at 2026-05-14 09:00:00

> Aider v0.86.2  
"""  # noqa: W291 - two blanks end its lines


def copilot(**more: Any) -> Json:
    tree = {"node": {"type": 1, "children": [{"type": 2, "text": "tick()"}, {"type": 2, "text": "tock()"}]}}
    rounds = [
        {
            "response": "I read it.",
            "toolCalls": [{"name": "read_file", "arguments": '{"path": "a.ts"}', "id": "t1"}],
        },
        {"response": "It ticks.", "toolCalls": []},
    ]
    results = {"t1": {"content": [{"value": tree}, {"value": "end"}]}}
    shown = [
        {"value": "See "},
        {"kind": "inlineReference", "name": "src/b.ts"},
        {"value": " there."},
        {"kind": "undoStop", "id": "x"},
        {
            "kind": "toolInvocationSerialized",
            "toolCallId": "t2",
            "toolId": "run_in_terminal",
            "invocationMessage": {"value": "Running"},
            "pastTenseMessage": {"value": "Ran npm test"},
        },
        "Green.",
    ]
    return {
        "version": 3,
        "sessionId": "s1",
        "creationDate": 1790000000000,
        "customTitle": "Clock",
        "responderUsername": "GitHub Copilot",
        "requests": [
            {
                "requestId": "r1",
                "message": {"text": "What does it do?", "parts": []},
                "variableData": {
                    "variables": [{"kind": "image", "name": "shot.png"}, {"kind": "implicit", "name": "x"}]
                },
                "timestamp": 1790000001000,
                "responseId": "a1",
                "response": [{"value": "I read it. It ticks."}],
                "result": {"metadata": {"toolCallRounds": rounds, "toolCallResults": results}},
                "modelState": {"value": 1},
            },
            {
                "requestId": "r2",
                "message": {"text": "Taken back"},
                "shouldBeRemovedOnSend": {"requestId": "r2"},
            },
            {
                "requestId": "r3",
                "message": {"text": "by itself"},
                "isSystemInitiated": True,
                "response": ["Done."],
            },
            {
                "requestId": "r4",
                "message": "And test it",
                "timestamp": 1790000009000,
                "responseId": "a4",
                "response": shown,
            },
            {
                "requestId": "r5",
                "message": {"text": "More"},
                "response": ["Half"],
                "modelState": {"value": 0},
            },
        ],
        **more,
    }


def copilot_log() -> list[Json]:
    whole = copilot()
    first, *others = whole["requests"]
    return [
        {"kind": 0, "v": {**whole, "requests": [], "customTitle": "Old"}},
        {"kind": 1, "k": ["customTitle"], "v": "Clock"},
        {
            "kind": 2,
            "k": ["requests"],
            "v": [{**first, "response": [], "result": None}, {"requestId": "gone"}],
        },
        {"kind": 1, "k": ["requests", 0, "result"], "v": first["result"]},
        {"kind": 2, "k": ["requests"], "v": others, "i": 1},
        {"kind": 1, "k": ["requests", 99, "vote"], "v": 1},
        {"kind": 3, "k": ["inputState"]},
    ]


def event(n: int, kind: str, /, agent: str = "", **data: Any) -> Json:
    line = {"type": kind, "id": f"e{n}", "timestamp": DAY.format(n), "data": data}
    return line | ({"agentId": agent} if agent else {})


def copilot_events() -> list[Json]:
    call = {"toolCallId": "t1", "name": "bash", "arguments": {"command": "ls"}, "type": "function"}
    return [
        event(0, "session.start", sessionId="cp1", context={"cwd": "/home/ada/shop"}),
        event(1, "user.message", content="Sort.", transformedContent="<now/>Sort.", source="user"),
        event(2, "user.message", content="skill", source="skill-pdf"),
        event(3, "assistant.message", content="I look.", reasoningText="hm", toolRequests=[call]),
        event(4, "tool.execution_start", toolCallId="t1", toolName="bash", arguments={"command": "ls"}),
        event(5, "tool.execution_complete", toolCallId="t1", success=True, result={"content": "plan.txt"}),
        event(6, "assistant.message", agent="t9", content="From a sub-agent"),
        event(7, "tool.execution_start", toolCallId="t2", toolName="bash", arguments={"command": "pwd"}),
        event(8, "tool.execution_complete", toolCallId="t2", success=False, error={"message": "denied"}),
        event(9, "assistant.turn_end", turnId="0"),
    ]


def opencode() -> Json:
    def message(n: int, role: str, *parts: Json, **more: Any) -> Json:
        times = {"created": 1784254006000 + 1000 * n} | ({"completed": 1} if role == "assistant" else {})
        return {"info": {"id": f"msg_{n}", "role": role, "time": times, **more}, "parts": list(parts)}

    state = {"status": "completed", "input": {"filePath": "a.md"}, "output": "hex board"}
    image = {"type": "file", "mime": "image/png", "url": PIXEL, "filename": "board.png"}
    call = {"type": "tool", "callID": "c1", "tool": "read", "state": {**state, "attachments": [image]}}
    failed = {"type": "tool", "callID": "c2", "tool": "bash", "state": {"status": "error", "error": "no"}}
    return {
        "info": {
            "id": "ses_1",
            "title": "Engines",
            "directory": "/home/ada/game",
            "time": {"created": 1784254006000},
            "revert": {"messageID": "msg_5"},
        },
        "messages": [
            message(
                1,
                "user",
                {"type": "text", "text": "Which engine?"},
                {"type": "text", "text": "<file>", "synthetic": True},
                image,
            ),
            message(
                2,
                "assistant",
                {"type": "step-start"},
                {"type": "reasoning", "text": "small"},
                call,
                failed,
                {"type": "text", "text": "Godot."},
            ),
            message(3, "assistant", {"type": "text", "text": "In short"}, summary=True),
            message(4, "user", {"type": "subtask", "prompt": "Try it", "agent": "general"}),
            message(5, "user", {"type": "text", "text": "Undone"}),
        ],
    }


def open_webui() -> Json:
    given = html.escape(json.dumps('{"city": "Brest"}'))
    answer = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 s</summary>\n> hm\n'
        "</details>\nI look.\n"
        f'<details type="tool_calls" done="true" id="t1" name="tides" arguments="{given}" '
        f'result="{html.escape(json.dumps("06:12"))}" files="">\n'
        "<summary>Tool Executed</summary>\n</details>\n"
        "At 06:12. <details><summary>More</summary>of it</details>"
    )
    messages: dict[str, Json] = {
        "u1": {"parentId": None, "role": "user", "content": "High water?", "timestamp": 1767340800},
        "a0": {"parentId": "u1", "role": "assistant", "content": "Left", "timestamp": 1767340801},
        "a1": {
            "parentId": "u1",
            "role": "assistant",
            "content": answer,
            "timestamp": 1767340802,
            "done": True,
        },
        "u2": {
            "parentId": "a1",
            "role": "user",
            "content": "And here?",
            "files": [{"type": "image", "url": PIXEL}, {"type": "file", "name": "map.pdf"}],
            "timestamp": 1767340803,
        },
        "a2": {"parentId": "u2", "role": "assistant", "content": "", "error": {"content": "overloaded"}},
    }
    history = {
        "currentId": "a2",
        "messages": {key: {"id": key, **message} for key, message in messages.items()},
    }
    return {"id": "ow1", "title": "Tides", "chat": {"title": "Tides", "history": history}, "archived": True}


def librechat(*, tree: bool = False) -> Json:
    call: Json = {
        "type": "tool_call",
        "tool_call": {"id": "t1", "name": "search", "args": '{"q": "x"}', "output": "found"},
    }
    rows: list[tuple[str, str, bool, Json]] = [
        ("u1", "00000000-0000-0000-0000-000000000000", True, {"text": "Look it up"}),
        ("a0", "u1", False, {"text": "Left"}),
        (
            "a1",
            "u1",
            False,
            {
                "text": "",
                "content": [{"type": "think", "think": "hm"}, call, {"type": "text", "text": "It is."}],
            },
        ),
        ("u2", "a1", True, {"text": "Thanks", "files": [{"filename": "a.png", "type": "image/png"}]}),
        ("e1", "a1", False, {"text": "overloaded", "error": True}),
        ("u3", "e1", True, {"text": "Again"}),
    ]
    messages: list[Json] = [
        {
            "messageId": key,
            "parentMessageId": parent,
            "isCreatedByUser": is_user,
            "createdAt": DAY.format(n),
            **more,
        }
        for n, (key, parent, is_user, more) in enumerate(rows)
    ]
    value = {"conversationId": "lc1", "title": "Look", "exportAt": "13:18:04 GMT-0400", "recursive": tree}
    if not tree:
        return {**value, "messages": messages}
    nodes: Json = {message["messageId"]: {**message, "children": []} for message in messages}
    for message in messages[1:]:
        nodes[message["parentMessageId"]]["children"].append(nodes[message["messageId"]])
    return {**value, "messagesTree": [nodes["u1"]]}


def continue_dev() -> Json:
    call = {"id": "t1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
    state = {
        "toolCallId": "t1",
        "toolCall": call,
        "status": "done",
        "output": [{"name": "a", "content": "rope"}],
    }
    image = {"type": "imageUrl", "imageUrl": {"url": PIXEL}}
    return {
        "sessionId": "cn1",
        "title": "Kite",
        "workspaceDirectory": "file:///home/ada/my%20kite",
        "history": [
            {
                "message": {"role": "user", "content": [{"type": "text", "text": "Which knot?"}, image]},
                "contextItems": [{"name": "knots.md", "content": "long"}],
            },
            {
                "message": {"role": "assistant", "content": "", "toolCalls": [call]},
                "toolCallStates": [state],
                "reasoning": {"text": "hm"},
            },
            {"message": {"role": "assistant", "content": "A bowline."}, "conversationSummary": "Knots"},
            {"message": {"role": "user", "content": "Thanks"}},
        ],
    }


def adk() -> Json:
    def said(n: int, author: str, *parts: Json, **more: Any) -> Json:
        content = {"content": {"parts": list(parts)}} if parts else {}
        return {
            "id": f"e{n}",
            "author": author,
            "timestamp": 1765000000.0 + n,
            "invocationId": "i1",
            **content,
            **more,
        }

    call = {"functionCall": {"id": "f1", "name": "book", "args": {"train": "night"}}}
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    return {
        "id": "adk1",
        "appName": "travel",
        "userId": "user",
        "state": {},
        "lastUpdateTime": 1765000009.0,
        "events": [
            said(0, "user", {"text": "A draft"}, invocationId="i0"),
            said(1, "user", actions={"rewindBeforeInvocationId": "i0"}),
            said(2, "user", {"text": "Book the night train."}, image),
            said(3, "travel", {"text": "hm", "thought": True}, call),
            said(
                4,
                "travel",
                {"functionResponse": {"id": "f1", "name": "book", "response": {"result": "seat 42"}}},
            ),
            said(5, "travel", actions={"stateDelta": {"a": 1}}),
            said(6, "travel", {"text": "Seat 42 is yours."}),
        ],
    }


def swe_agent() -> Json:
    call = {"id": "c1", "type": "function", "function": {"name": "open", "arguments": '{"path": "a.py"}'}}
    return {
        "environment": "swe_main",
        "trajectory": [],
        "history": [
            {"role": "system", "content": "You program.", "agent": "main", "message_type": "system_prompt"},
            {"role": "user", "content": "Another run", "agent": "main", "is_demo": True},
            {"role": "user", "content": "Fix the colon.", "agent": "main", "message_type": "observation"},
            {"role": "assistant", "content": "I open it.", "agent": "main", "tool_calls": [call]},
            {"role": "tool", "content": "1: def f()", "agent": "main", "tool_call_ids": ["c1"]},
            {"role": "assistant", "content": "I run it.\n```\nls\n```", "agent": "main"},
            {"role": "user", "content": "a.py", "agent": "main", "message_type": "observation"},
        ],
    }


def roo() -> list[Json]:
    return [
        {"role": "user", "content": [{"type": "text", "text": "Show seconds."}], "ts": 1790000000000},
        {"type": "reasoning", "encrypted_content": "x", "summary": [], "ts": 1790000001000},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "ts": 1790000002000},
        {"role": "user", "content": "What was said", "ts": 1790000003000, "isSummary": True},
    ]


DOCUMENTS = [claude_ai, copilot, opencode, open_webui, librechat, continue_dev, adk, swe_agent]
