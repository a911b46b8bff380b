"""Gemini CLI: the chats under `~/.gemini/tmp/<project>/chats`."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import groupby

from holdfast.port import formats
from holdfast.port.texts import clean
from holdfast.types import Message
from holdfast_cli.formats.files import File, beginning, lines, values
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import (
    Json,
    call_item,
    dict_of,
    list_of,
    repeat_id,
    result_item,
    stable_id,
    text_of,
)

_ROLES = {"user": "user", "gemini": "assistant"}
_RESULTS = ("result", "resultDisplay")
_ROOT = ".project_root"  # a file beside the chats of a project
_LONGEST_ROOT = 4096  # bytes of it
_LEFT = "on a branch that was left: the user went back behind it"

# What the program and hooks have added to a prompt.
_CONTEXTS = re.compile(
    r"\s*+(?:<(hook|session)_context>(?:(?!</\1_context>).)*+</\1_context>\s*+)++", re.DOTALL
)
_ADDED = "not conversation: context that the program added"
_SUMMARY = "<state_snapshot>"  # how a compaction begins, which the model then answers

_Values = Iterable[tuple[int, object] | Skip]


def is_chat(value: Json) -> bool:
    """Return whether an object is a chat, or the first line of one."""
    return all(isinstance(value.get(key), str) for key in ("sessionId", "projectHash"))


def read(file: File) -> Iterator[Item]:
    """Yield the messages of a chat, one record a line; calls of tools and their results are messages too.

    A record is written again when it gets longer, and counts as it is in the end. Of a history that a line
    sets, what was not there before is taken: after a compaction it repeats the end of the chat under other
    ids. Left out and counted are what the program notes beside the conversation, and what the user went back
    behind. The chat of a sub-agent is one of its own, `<session>/agent-<id>`.
    """
    return _items(file, lines(file), _Log(lines(file)))


def without_contexts(prompt: str) -> str:
    """Return a prompt without what hooks have put before it."""
    contexts = _CONTEXTS.match(prompt)
    return prompt[contexts.end() :] if contexts else prompt


def read_document(file: File) -> Iterator[Item]:
    """Yield the messages of a chat in one JSON document, as versions of before 2026 write it."""
    return _items(file, values(file), _Log(values(file)))


class _Log:
    """The state of a log after all its lines: the last line of each record, and the abandoned ones.

    `histories` are the new records in histories that lines set. `tools` are the tools of calls by their ids,
    `answered` the ids of calls with a result.
    """

    def __init__(self, rows: _Values) -> None:
        self.last: dict[str, int] = {}
        self.left: set[tuple[int, str]] = set()
        self.histories: dict[int, list[dict[str, object]]] = {}
        self.tools: dict[str, object] = {}
        self.answered: set[str] = set()
        self._order: list[str] = []
        self._places: dict[str, tuple[int, list[int]]] = {}
        self._words: dict[str, tuple[str, str]] = {}
        for item in rows:
            if isinstance(item, Skip):
                continue
            number, value = item[0], dict_of(item[1])
            history = list_of(dict_of(value.get("$set")).get("messages"))
            for record in map(dict_of, (value, *list_of(value.get("messages")), *history)):
                for call in map(dict_of, list_of(record.get("toolCalls"))):
                    self.tools[text_of(call.get("id"))] = call.get("name")
                    self.answered |= {text_of(call.get("id"))} if any(map(call.get, _RESULTS)) else set()
            if "$rewindTo" in value:
                self._go_back(text_of(value["$rewindTo"]))
            elif history:
                self.histories[number] = self._new_in(history, number)
            elif text_of(value.get("id")):
                self._note(number, value)

    def _note(self, number: int, record: Json) -> None:
        identity = text_of(record.get("id"))
        if identity not in self._places:
            self._places[identity] = (len(self._order), [])
            self._order.append(identity)
        self._places[identity][1].append(number)
        self._words[identity] = _words(record)
        self.last[identity] = number

    def _go_back(self, identity: str) -> None:
        # The program forgets everything where it does not find the record.
        start = self._places.get(identity, (0, []))[0]
        for name in self._order[start:]:
            self.left.update((number, name) for number in self._places.pop(name)[1])
            del self._words[name]
        del self._order[start:]

    def _new_in(self, history: Iterable[object], number: int) -> list[dict[str, object]]:
        by_words: dict[tuple[str, str], list[str]] = defaultdict(list)
        for identity, words in self._words.items():
            by_words[words].append(identity)
        new, after_summary = [], False
        for record in map(dict, map(dict_of, history)):
            identity, (kind, text) = text_of(record.get("id")), _words(record)
            is_answer, after_summary = after_summary and kind == "gemini", text.startswith(_SUMMARY)
            if earlier := by_words[kind, text]:
                self._places.setdefault(identity, self._places[earlier.pop(0)])
            elif text and identity not in self._places and not is_answer and not after_summary:
                record["id"] = identity or stable_id(number, record)
                self._note(number, record)
                new.append(record)
        return new

    def new_calls(self, parts: Iterable[Json]) -> list[Json]:
        """Return the calls in parts of a record that no record lists."""
        calls = [dict_of(part["functionCall"]) for part in parts if "functionCall" in part]
        return [call for call in calls if text_of(call.get("id")) not in self.tools]

    def answers(self, parts: Iterable[Json]) -> Iterator[dict[str, object]]:
        """Yield the results in parts of a record that stand with no call, each as a call that has it.

        One without the id of its call is that of the first one of the tool that has none.
        """
        for part in (part for part in parts if "functionResponse" in part):
            response = dict_of(part["functionResponse"])
            tool = response.get("name")
            waiting = (key for key, name in self.tools.items() if name == tool and key not in self.answered)
            call = text_of(response.get("id")) or next(waiting, stable_id(0, part))
            if call not in self.answered:
                self.answered.add(call)
                yield {"id": call, "name": tool, "result": [part]}


def _words(record: Json) -> tuple[str, str]:
    """Return the identity of a record whatever its id: its kind, words, calls and files."""
    parts = _own_parts(_parts(record.get("content")))
    others = [
        part.get("functionCall") or part.get("functionResponse") or part
        for part in parts
        if "text" not in part
    ]
    others += list_of(record.get("toolCalls"))
    names = (text_of(dict_of(part).get("id")) or stable_id(0, part) for part in others)
    texts = [text_of(part["text"]) for part in parts if "text" in part]
    return text_of(record.get("type")), "\n".join([*texts, *dict.fromkeys(names)]).strip()


def _items(file: File, rows: _Values, log: _Log) -> Iterator[Item]:
    chat = ImportedChat(file.name)
    for item in rows:
        if isinstance(item, Skip):
            yield item
            continue
        number, value = item
        if not isinstance(value, dict):
            yield Skip(number, "no record", problem=True)
        elif is_chat(value):
            chat = _chat(file, value)
            for place, entry in enumerate(list_of(value.get("messages")), 1):
                yield from _record(chat, place, dict(dict_of(entry)), log)
        else:
            for record in log.histories.get(number) or [value]:
                reason = _why_left_out(number, record, log)
                yield from [Skip(number, reason)] if reason else _record(chat, number, record, log)


def _why_left_out(number: int, value: Json, log: _Log) -> str:
    identity = text_of(value.get("id"))
    if (number, identity) in log.left:
        return _LEFT
    if not identity:
        return "not conversation: a note on the session"
    return "" if log.last[identity] == number else "written again, longer, on a line that follows"


def _chat(file: File, value: Json) -> ImportedChat:
    session = text_of(value["sessionId"])
    folder = folder_of(file, value)
    if value.get("kind") == "subagent" and file.location:
        session = f"{file.location.parent.name}/agent-{session}"
    return ImportedChat(clean(session) or file.name, text_of(value.get("summary")), folder=folder)


def folder_of(file: File, chat: Json) -> str:
    """Return the folder of the project, which stands beside its chats; its hash stands in each of them."""
    parents = list(file.location.parents)[:4] if file.location else []
    roots = (beginning(parent / _ROOT, _LONGEST_ROOT).strip() for parent in parents)
    root = next(filter(None, roots), b"")
    return root.decode(errors="replace") if sha256(root).hexdigest() == chat.get("projectHash") else ""


def is_event(value: Json) -> bool:
    """Return whether an object is the first line of what the program puts out as `stream-json`."""
    return value.get("type") == "init" and isinstance(value.get("session_id"), str) and "model" in value


def read_events(file: File) -> Iterator[Item]:
    """Yield the messages of a `stream-json`: the pieces of an answer are one, calls and results their own."""
    chat, counts = ImportedChat(file.name), Counter[str]()
    for _, run in groupby(lines(file), _piece):
        first, *more = run
        if isinstance(first, Skip):
            yield first
            continue
        number, value = first
        rest = "".join(text_of(piece[1].get("content")) for piece in more if not isinstance(piece, Skip))
        value |= {"content": f"{text_of(value.get('content'))}{rest}"} if rest else {}
        chat = replace(chat, id=text_of(value.get("session_id")) or chat.id)
        if item := _event(value):
            item |= {"id": repeat_id(counts, [chat.id, value]), "raw": value}
            yield item_of(chat, number, formats.parse, item)
        else:
            yield Skip(number, f"not conversation: {clean(text_of(value.get('type')))[:40] or 'no type'}")


def _piece(item: tuple[int, dict[str, object]] | Skip) -> object:
    """Return the key of a line's message: the speaker of pieces, the number of any other line."""
    if isinstance(item, Skip):
        return item
    return item[1].get("role") if item[1].get("delta") is True else item[0]


def _event(value: Json) -> dict[str, object] | None:
    call, at = text_of(value.get("tool_id")), value.get("timestamp")
    match value.get("type"):
        case "message":
            return {"role": value.get("role"), "content": value.get("content"), "at": at}
        case "tool_use":
            return call_item(call, value.get("tool_name"), value.get("parameters"), at)
        case "tool_result":
            output = text_of(value.get("output")) or text_of(dict_of(value.get("error")).get("message"))
            return result_item(call, output or "[no text]", at)
    return None


def _record(chat: ImportedChat, number: int, value: dict[str, object], log: _Log) -> Iterator[Item]:
    kind, parts = text_of(value.get("type")), _parts(value.get("content"))
    value["id"] = text_of(value.get("id")) or stable_id(number, value)
    calls = [
        {**dict_of(call), "id": text_of(dict_of(call).get("id")) or f"{value['id']}/{place}"}
        for place, call in enumerate(list_of(value.get("toolCalls")) or log.new_calls(parts), 1)
    ]
    log.tools |= {str(call["id"]): call.get("name") for call in calls}
    answers = list(log.answers(parts))
    if kind not in _ROLES:
        yield Skip(number, f"not conversation: {clean(kind)[:40] or 'no type'}")
        return
    texts = [part for part in parts if not ({"functionCall", "functionResponse"} & part.keys())]
    if kind == "user":
        texts, before = _own_parts(texts), texts
        if before and not texts:
            yield Skip(number, _ADDED)
            return
    if texts or value.get("thoughts"):
        yield item_of(chat, number, _message, value, texts)
    elif not (calls or answers):
        reason = "a call or result of a tool, which stands with the call" if parts else "empty"
        yield Skip(number, reason)
    for call in calls:
        yield item_of(chat, number, _call, value, call)
        if any(call.get(key) for key in _RESULTS):
            yield item_of(chat, number, _result, value, call)
    yield from (item_of(chat, number, _result, value, answer) for answer in answers)


def _parts(content: object) -> list[Json]:
    items = content if isinstance(content, list) else [content] if content else []
    return [{"text": part} if isinstance(part, str) else dict_of(part) for part in items]


def _own_parts(parts: Iterable[Json]) -> list[Json]:
    """Return the parts of a prompt without what hooks have added: before it, or as parts of their own."""
    result = []
    for part in parts:
        text = text_of(part.get("text"))
        if not text:
            result.append(part)
        elif own := without_contexts(text):
            result.append({**part, "text": own})
    return result


def _text(part: Json) -> Json:
    """Return a part in a form that chat formats have: other media become placeholders."""
    if part.get("thought") is True:
        return {"type": "thinking"}
    media = dict_of(part.get("inlineData") or part.get("fileData"))
    names = (text_of(media.get(key)) for key in ("displayName", "fileUri", "mimeType"))
    name = next(filter(None, names), "unnamed")
    return {"type": "text", "text": text_of(part.get("text")) or f"[file: {name}]"}


def _message(value: dict[str, object], texts: list[Json]) -> Message:
    role = _ROLES[text_of(value.get("type"))]
    raw = {key: field for key, field in value.items() if key != "toolCalls"}
    content: object = [_text(part) for part in texts] or formats.REASONING
    fields = {"id": text_of(value.get("id")), "at": value.get("timestamp"), "raw": raw}
    return formats.parse({"role": role, "content": content, **fields})


def _call(value: Json, call: dict[str, object]) -> Message:
    raw = {key: field for key, field in call.items() if key not in _RESULTS}
    identity, at = text_of(call.get("id")), call.get("timestamp") or value.get("timestamp")
    item = call_item(identity, call.get("name"), call.get("args"), at)
    return formats.parse({**item, "id": identity, "raw": raw})


def _result(value: Json, call: dict[str, object]) -> Message:
    identity = clean(text_of(call.get("id")))
    raw = {key: part for key, part in call.items() if key in {"id", "name", "status", "timestamp", *_RESULTS}}
    parts = [_text(part) for part in map(_answer, _parts(call.get("result"))) if part]
    content: object = parts or text_of(call.get("resultDisplay")) or "[no text]"
    at = call.get("timestamp") or value.get("timestamp")
    return formats.parse({**result_item(identity, content, at), "id": f"{identity}/result", "raw": raw})


def _answer(part: Json) -> Json:
    if "functionResponse" not in part:
        return part
    response = dict_of(dict_of(part["functionResponse"]).get("response"))
    text = text_of(response.get("output")) or text_of(response.get("error"))
    return {"text": text or (json.dumps(response) if response else "")}
